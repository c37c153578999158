/// Bytes with random access: an array or a file.
public protocol ByteSource {
  /// The total number of bytes.
  var count: Int { get }

  /// Returns `count` bytes from `offset` on, fewer at the end, none if they cannot be read.
  func bytes(at offset: Int, count: Int) -> ArraySlice<UInt8>
}

extension [UInt8]: ByteSource {
  public func bytes(at offset: Int, count: Int) -> ArraySlice<UInt8> {
    guard offset >= 0, offset < self.count, count > 0 else { return [] }
    return self[offset..<(offset + Swift.min(count, self.count - offset))]
  }
}

extension UnsafeRawBufferPointer: ByteSource {
  public func bytes(at offset: Int, count: Int) -> ArraySlice<UInt8> {
    guard offset >= 0, offset < self.count, count > 0 else { return [] }
    return ArraySlice(self[offset..<(offset + Swift.min(count, self.count - offset))])
  }
}

/// Reads numbers from a source at checked offsets, through a window, so that a file is read in few small pieces.
///
/// An offset beyond the end is the error `cut`, never a trap. 64-bit offsets from the file must go through
/// `offset(_:)`. The sum of an offset within the source and a 32-bit number cannot overflow.
struct HeaderReader {
  private let source: any ByteSource
  private var window: ArraySlice<UInt8> = []
  private var windowStart = 0
  private var windowLength = HeaderReader.minWindow
  /// The position of the EXIF data, once the header of an image has been read to it.
  var exifStart: Int?
  private static let minWindow = 4096
  private static let maxWindow = 65_536

  init(_ source: any ByteSource) { self.source = source }

  var count: Int { source.count }

  mutating func uint8(_ offset: Int) throws(ImageHeaderError) -> Int {
    let position = offset &- windowStart
    if position >= 0, position < window.count { return Int(window[window.startIndex + position]) }
    return Int(try refill(at: offset))
  }

  /// Moves the window and returns its first byte. Not inlined because it is rare, and because the optimiser of Swift
  /// 6.3 crashes on loops that it is inlined into.
  @inline(never)
  private mutating func refill(at offset: Int) throws(ImageHeaderError) -> UInt8 {
    guard offset >= 0, offset < source.count else { throw .cut }
    // A read that continues at the end of the window suggests a sequential read; larger pieces are cheaper then.
    windowLength = offset &- windowStart == window.count ? min(windowLength * 2, Self.maxWindow) : Self.minWindow
    window = source.bytes(at: offset, count: windowLength)
    windowStart = offset
    guard let first = window.first else { throw .cut }
    return first
  }

  mutating func uint64(_ offset: Int, bytes: Int, isLittleEndian: Bool) throws(ImageHeaderError) -> UInt64 {
    var value: UInt64 = 0
    for index in 0..<bytes {
      let next = isLittleEndian ? bytes - 1 - index : index
      value = value << 8 | UInt64(try uint8(offset + next))
    }
    return value
  }

  private mutating func big(_ offset: Int, _ bytes: Int) throws(ImageHeaderError) -> Int {
    Int(try uint64(offset, bytes: bytes, isLittleEndian: false))
  }

  private mutating func little(_ offset: Int, _ bytes: Int) throws(ImageHeaderError) -> Int {
    Int(try uint64(offset, bytes: bytes, isLittleEndian: true))
  }

  mutating func big16(_ offset: Int) throws(ImageHeaderError) -> Int { try big(offset, 2) }
  mutating func big32(_ offset: Int) throws(ImageHeaderError) -> Int { try big(offset, 4) }
  mutating func little16(_ offset: Int) throws(ImageHeaderError) -> Int { try little(offset, 2) }
  mutating func little24(_ offset: Int) throws(ImageHeaderError) -> Int { try little(offset, 3) }
  mutating func little32(_ offset: Int) throws(ImageHeaderError) -> Int { try little(offset, 4) }

  mutating func name(_ offset: Int) throws(ImageHeaderError) -> FourCC { FourCC(value: try big32(offset)) }

  /// `count` must be small, because the bytes are copied.
  mutating func bytes(_ offset: Int, count: Int) throws(ImageHeaderError) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    for index in 0..<count { bytes.append(UInt8(truncatingIfNeeded: try uint8(offset + index))) }
    return bytes
  }

  /// Converts a number from the file to an offset or a length within the file.
  func offset(_ number: UInt64) throws(ImageHeaderError) -> Int {
    guard let offset = Int(exactly: number), offset <= source.count else { throw .cut }
    return offset
  }
}
