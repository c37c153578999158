internal import Threads

/// Limits the bytes of images read into memory for inline delivery to what the output can take: a fixed number of bytes
/// at a time, and none while nobody reads the output. Waiting reads start in FIFO order.
@LoadingActor
final class InlineReadLimiter {
  /// The maximum number of bytes that may be read and not yet written; a larger image is read alone.
  private static let maxBytes: Int64 = 32 << 20

  var isClosed = false {
    didSet { release() }
  }
  private var bytesInFlight: Int64 = 0
  private var waiting = FIFO<(byteCount: Int64, read: @LoadingActor () -> Void)>()

  /// Whether a read of so many bytes could start at once.
  func isOpen(for byteCount: Int64) -> Bool { waiting.isEmpty && !isClosed && hasRoom(for: byteCount) }

  private func hasRoom(for byteCount: Int64) -> Bool {
    bytesInFlight == 0 || bytesInFlight + byteCount <= Self.maxBytes
  }

  /// Calls `read` when so many bytes are free. `end` must be called when it is done.
  func begin(_ byteCount: Int64, _ read: @escaping @LoadingActor () -> Void) {
    waiting.append((byteCount, read))
    release()
  }

  func end(_ byteCount: Int64) {
    bytesInFlight -= byteCount
    release()
  }

  private func release() {
    while !isClosed, let next = waiting.first, hasRoom(for: next.byteCount) {
      waiting.popFirst()
      bytesInFlight += next.byteCount
      next.read()
    }
  }
}
