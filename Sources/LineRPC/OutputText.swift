/// A growing byte buffer. The capacity is checked once for each appended piece, not for each byte.
struct OutputText: ~Copyable {
  // Unsafe: `start` points to `capacity` bytes that only this value uses; the first `count` are initialized, and no
  // others are read.
  private var start: UnsafeMutablePointer<UInt8>
  private var capacity: Int
  private(set) var count = 0

  /// - Parameter capacity: bytes that can be written before the buffer grows.
  init(capacity: Int) {
    self.capacity = max(capacity, 64)
    start = .allocate(capacity: self.capacity)
  }

  deinit { start.deallocate() }

  var bytes: [UInt8] { Array(UnsafeBufferPointer(start: start, count: count)) }

  borrowing func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    body(UnsafeRawBufferPointer(start: start, count: count))
  }

  /// Removes all bytes and keeps the capacity.
  mutating func removeAll() { count = 0 }

  /// Appends at most `maxCount` bytes, which `write` puts at the given address; it returns their number.
  @inline(__always)
  mutating func append(atMost maxCount: Int, _ write: (UnsafeMutablePointer<UInt8>) -> Int) {
    if capacity - count < maxCount { grow(by: maxCount) }
    let written = write(start + count)
    assert(written <= maxCount)
    count += written
  }

  @inline(never)
  private mutating func grow(by additional: Int) {
    capacity += max(capacity, additional)
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
