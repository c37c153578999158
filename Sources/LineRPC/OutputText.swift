/// A growing byte buffer. The capacity is checked once for each appended piece, not for each byte.
public struct OutputText: ~Copyable {
  // Unsafe: `start` points to `capacity` bytes that only this value uses; the first `count` are initialized, and no
  // others are read.
  @usableFromInline var start: UnsafeMutablePointer<UInt8>
  @usableFromInline var capacity: Int
  @usableFromInline var length = 0

  /// - Parameter capacity: bytes that can be written before the buffer grows.
  public init(capacity: Int) {
    self.capacity = max(capacity, 64)
    start = .allocate(capacity: self.capacity)
  }

  deinit { start.deallocate() }

  @inlinable public var count: Int { length }

  public var bytes: [UInt8] { Array(UnsafeBufferPointer(start: start, count: length)) }

  /// The bytes so far, which must not be used after the next change.
  @inlinable public borrowing func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    body(UnsafeRawBufferPointer(start: start, count: length))
  }

  /// Removes all bytes and keeps the capacity.
  @inlinable public mutating func removeAll() { length = 0 }

  /// Appends at most `maxCount` bytes, which `write` puts at the given address; it returns their number.
  @inlinable @inline(__always)
  public mutating func append(atMost maxCount: Int, _ write: (UnsafeMutablePointer<UInt8>) -> Int) {
    if capacity - length < maxCount { grow(by: maxCount) }
    let written = write(start + length)
    assert(written <= maxCount)
    length += written
  }

  @usableFromInline @inline(never)
  mutating func grow(by additional: Int) {
    capacity += max(capacity, additional)
    let larger = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
    larger.update(from: start, count: length)
    start.deallocate()
    start = larger
  }

  @inlinable @inline(__always)
  public mutating func append(_ byte: UInt8) {
    append(atMost: 1) { end in
      end.pointee = byte
      return 1
    }
  }

  @inlinable
  public mutating func append(_ text: UnsafeRawBufferPointer) {
    guard let source = text.baseAddress else { return }
    append(atMost: text.count) { end in
      UnsafeMutableRawPointer(end).copyMemory(from: source, byteCount: text.count)
      return text.count
    }
  }

  @inlinable
  public mutating func append(_ text: StaticString) {
    append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }
}
