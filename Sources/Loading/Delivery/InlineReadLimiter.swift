internal import Threads

/// Lets images be read into memory only as fast as their bytes go out again: so many at a time, and none while nobody
/// reads the output. Those that wait begin in their order.
@LoadingActor
final class InlineReadLimiter {
  /// Bytes that may be on their way; one image that is larger goes alone.
  private static let most: Int64 = 32 << 20

  var isClosed = false {
    didSet { release() }
  }
  private var underWay: Int64 = 0
  private var waiting = FIFO<(byteCount: Int64, read: @LoadingActor () -> Void)>()

  /// Whether an image of so many bytes could be read at once.
  func isOpen(for byteCount: Int64) -> Bool { waiting.isEmpty && !isClosed && hasRoom(for: byteCount) }

  private func hasRoom(for byteCount: Int64) -> Bool { underWay == 0 || underWay + byteCount <= Self.most }

  /// Has `read` called when there is room for so many bytes. When it is done, `end` has to be called.
  func begin(_ byteCount: Int64, _ read: @escaping @LoadingActor () -> Void) {
    waiting.append((byteCount, read))
    release()
  }

  func end(_ byteCount: Int64) {
    underWay -= byteCount
    release()
  }

  private func release() {
    while !isClosed, let next = waiting.first, hasRoom(for: next.byteCount) {
      waiting.popFirst()
      underWay += next.byteCount
      next.read()
    }
  }
}
