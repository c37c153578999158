/// Text that grows at its end, in memory of its own. There is one check for room for a whole piece, not one for each
/// byte.
struct OutputText: ~Copyable {
  // Unsafe: `capacity` bytes at `start` belong to it alone; the first `count` are written, and nobody reads the others.
  private var start: UnsafeMutablePointer<UInt8>
  private var capacity: Int
  private(set) var count = 0

  /// - Parameter capacity: bytes that can be written before it moves.
  init(capacity: Int) {
    self.capacity = max(capacity, 64)
    start = .allocate(capacity: self.capacity)
  }

  deinit { start.deallocate() }

  var bytes: [UInt8] { Array(UnsafeBufferPointer(start: start, count: count)) }

  /// Has `write` put at most `room` bytes at the end; it returns how many.
  @inline(__always)
  mutating func append(atMost room: Int, _ write: (UnsafeMutablePointer<UInt8>) -> Int) {
    if capacity - count < room { grow(by: room) }
    let written = write(start + count)
    assert(written <= room)
    count += written
  }

  @inline(never)
  private mutating func grow(by room: Int) {
    capacity += max(capacity, room)
    let larger = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
    larger.update(from: start, count: count)
    start.deallocate()
    start = larger
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
