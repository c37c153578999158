internal import CDeflate
internal import CVectors
internal import CZlib
internal import Platform

/// The rows of a PNG's image data, inflated and unfiltered. Rows of up to 64 MB are inflated at once, by libdeflate, in
/// half of zlib's time; larger ones, and those of damaged data, one after the other by zlib.
final class PNGRows {
  static let maxAtOnce = 64 << 20

  private enum Source {
    /// All rows, of which this many bytes have been returned.
    case whole(PixelMemory, Int)
    case stream(PNGStream)
  }

  private var source: Source
  private let pixel: Int
  private let zeros: PixelMemory
  private var last: UnsafePointer<UInt8>

  /// - Parameters:
  ///   - length: the bytes of all rows, with their filters.
  ///   - longest: the bytes of the longest row, without its filter.
  ///   - pixel: the bytes of a pixel.
  init(
    _ file: UnsafeRawBufferPointer, _ pieces: [Range<Int>], length: Int, longest: Int, pixel: Int
  ) throws(LibraryError) {
    if length <= Self.maxAtOnce, let whole = try Self.inflated(file, pieces, length) {
      source = .whole(whole, 0)
    } else {
      source = .stream(try PNGStream(file, pieces, longest: longest + 1))
    }
    self.pixel = pixel
    zeros = try PixelMemory(longest)
    zeros.clear()
    last = UnsafePointer(zeros.samples)
  }

  /// The next row of this many bytes, which is valid until the next but one.
  ///
  /// - Parameter isFirst: whether no row is above it.
  func next(_ length: Int, isFirst: Bool) throws(LibraryError) -> UnsafePointer<UInt8> {
    let row: UnsafeMutablePointer<UInt8>
    switch source {
    case .whole(let memory, let offset):
      row = memory.samples + offset
      source = .whole(memory, offset + length + 1)
    case .stream(let stream): row = try stream.next(length + 1)
    }
    guard row[0] <= 4 else { throw LibraryError("a row of the PNG has an unknown filter") }
    let above = isFirst ? UnsafePointer(zeros.samples) : last
    cvectors_unfilter(Int32(row[0]), row + 1, above, length, pixel)
    last = UnsafePointer(row + 1)
    return last
  }

  /// Nil if the data is damaged, or is too short.
  private static func inflated(
    _ file: UnsafeRawBufferPointer, _ pieces: [Range<Int>], _ length: Int
  ) throws(LibraryError) -> PixelMemory? {
    var data = UnsafeRawBufferPointer(rebasing: file[pieces.first ?? 0..<0])
    var joined: PixelMemory?
    if pieces.count > 1 {
      let memory = try PixelMemory(pieces.reduce(0) { $0 + $1.count })
      var place = memory.bytes.baseAddress!
      for piece in pieces where !piece.isEmpty {
        place.copyMemory(from: file.baseAddress! + piece.lowerBound, byteCount: piece.count)
        place += piece.count
      }
      (joined, data) = (memory, UnsafeRawBufferPointer(memory.bytes))
    }
    let rows = try PixelMemory(length + Deflate.slack)
    var count = 0
    let status = withExtendedLifetime(joined) { Deflate.inflate(data, into: rows.bytes, &count) }
    let isComplete = status == LIBDEFLATE_INSUFFICIENT_SPACE || status == LIBDEFLATE_SUCCESS && count >= length
    return isComplete ? rows : nil
  }
}

/// zlib data (RFC 1950) inflated by libdeflate.
enum Deflate {
  /// If the space ends within a stored block or a copy, which have at most so many bytes, nothing of it is written.
  static let slack = 1 << 16

  static func inflate(
    _ data: UnsafeRawBufferPointer, into space: UnsafeMutableRawBufferPointer, _ count: inout Int
  ) -> libdeflate_result {
    guard let decompressor = libdeflate_alloc_decompressor() else { return LIBDEFLATE_BAD_DATA }
    defer { libdeflate_free_decompressor(decompressor) }
    return libdeflate_zlib_decompress_ex(
      decompressor, data.baseAddress, data.count, space.baseAddress, space.count, nil, &count)
  }
}

/// Rows that zlib inflates one after the other.
private final class PNGStream {
  private let file: UnsafeRawBufferPointer
  private var pieces: ArraySlice<Range<Int>>
  private let stream: UnsafeMutablePointer<z_stream>
  private let rows: [PixelMemory]
  private var number = 0

  /// - Parameter longest: the bytes of the longest row, with its filter.
  init(_ file: UnsafeRawBufferPointer, _ pieces: [Range<Int>], longest: Int) throws(LibraryError) {
    (self.file, self.pieces) = (file, pieces[...])
    rows = [try PixelMemory(longest), try PixelMemory(longest)]
    stream = .allocate(capacity: 1)
    stream.initialize(to: z_stream())
    guard inflateInit_(stream, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
      throw LibraryError("out of memory")
    }
  }

  /// Also runs if `init` throws: all stored properties are initialised by then.
  deinit {
    inflateEnd(stream)
    stream.deallocate()
  }

  func next(_ length: Int) throws(LibraryError) -> UnsafeMutablePointer<UInt8> {
    number = 1 - number
    let row = rows[number].samples
    (stream.pointee.next_out, stream.pointee.avail_out) = (row, UInt32(length))
    while stream.pointee.avail_out > 0 {
      if stream.pointee.avail_in == 0, let piece = pieces.popFirst() {
        let data = file.baseAddress! + piece.lowerBound
        (stream.pointee.next_in, stream.pointee.avail_in) = (
          data.assumingMemoryBound(to: UInt8.self), UInt32(piece.count)
        )
        if piece.isEmpty { continue }
      }
      let status = inflate(stream, Z_NO_FLUSH)
      // An error after the last pixel is none of theirs: a wrong checksum of the data.
      guard status == Z_OK || stream.pointee.avail_out == 0 else {
        let isShort = status == Z_STREAM_END || status == Z_BUF_ERROR
        throw LibraryError(
          isShort ? "the image data of the PNG ends too early" : "the image data of the PNG is invalid")
      }
    }
    return row
  }
}
