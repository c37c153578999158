/// Text that grows at its end. There is one check for room for a whole piece, not one for each byte.
struct OutputText: Sendable {
  /// What lies beyond `count` is room.
  private var storage: [UInt8]
  private(set) var count = 0

  /// - Parameter capacity: bytes that can be written before the buffer grows.
  init(capacity: Int) { storage = [UInt8](repeating: 0, count: capacity) }

  var bytes: [UInt8] { Array(storage[..<count]) }

  /// What was written, without a copy.
  consuming func take() -> [UInt8] {
    storage.removeLast(storage.count - count)
    return storage
  }

  /// Has `write` put at most `room` bytes at the end; it returns how many.
  @inline(__always)
  mutating func append(atMost room: Int, _ write: (UnsafeMutablePointer<UInt8>) -> Int) {
    let start = count
    if storage.count - start < room { grow(by: room) }
    count = storage.withUnsafeMutableBufferPointer { storage in
      guard let base = storage.baseAddress else { return start }
      let written = write(base + start)
      assert(written <= room)
      return start + written
    }
  }

  @inline(never)
  private mutating func grow(by room: Int) {
    let missing = max(storage.count, room, 64)
    storage.append(contentsOf: repeatElement(0, count: missing))
  }

  @inline(__always)
  mutating func append(_ byte: UInt8) {
    append(atMost: 1) { end in
      end.pointee = byte
      return 1
    }
  }

  mutating func append(_ text: UnsafeRawBufferPointer) {
    guard let source = text.baseAddress else { return }
    append(atMost: text.count) { end in
      UnsafeMutableRawPointer(end).copyMemory(from: source, byteCount: text.count)
      return text.count
    }
  }

  mutating func append(_ text: StaticString) {
    append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }
}
