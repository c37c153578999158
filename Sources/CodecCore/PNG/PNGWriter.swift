internal import CDeflate
internal import CVectors
internal import CZlib
internal import Platform

/// Writes a PNG of bytes. Each row gets the filter whose result is the smallest. libdeflate compresses all rows at
/// once, or zlib without a search for repetitions, which has better results for photographs
/// (Tests/Benchmarks/README.md).
package final class PNGWriter {
  private let (width, height, bands): (Int, Int, Int)
  private let filtered: PixelMemory
  private var count = 0
  /// The last two rows, each after the zeros of the pixel before it, and a row on trial.
  private var (row, above): (PixelMemory, PixelMemory)
  private let trial: PixelMemory

  /// A higher level takes twice the time for 1 % of the size.
  private static let level: Int32 = 3

  /// Nil if the rows have more than 64 MB.
  ///
  /// - Parameter bands: 1 for grey, 3 for R G B, and one more for alpha.
  package init?(width: Int, height: Int, bands: Int) throws(LibraryError) {
    let length = width * bands
    guard length + 1 <= PNGRows.maxAtOnce / height else { return nil }
    (self.width, self.height, self.bands) = (width, height, bands)
    filtered = try PixelMemory((length + 1) * height)
    row = try PixelMemory(length + bands)
    above = try PixelMemory(length + bands)
    trial = try PixelMemory(length)
    row.clear()
    above.clear()
  }

  package func write(_ bytes: UnsafeRawBufferPointer) {
    (row.bytes.baseAddress! + bands).copyMemory(from: bytes.baseAddress!, byteCount: bytes.count)
    cvectors_filter(
      row.samples + bands, above.samples + bands, bytes.count, bands, trial.samples, filtered.samples + count)
    count += bytes.count + 1
    (row, above) = (above, row)
  }

  package func finish() throws(LibraryError) -> EncodedFile {
    guard let compressor = libdeflate_alloc_compressor(Self.level) else { throw LibraryError("out of memory") }
    defer { libdeflate_free_compressor(compressor) }
    // A sample is not taken of few rows.
    let hasRepetitions = if count < Self.sampled { true } else { try hasRepetitions(compressor) }
    let room = libdeflate_zlib_compress_bound(compressor, count)
    guard let memory = malloc(Self.headLength + 8 + room + 4 + 12) else { throw LibraryError("out of memory") }
    let data = memory + Self.headLength + 8
    let length =
      (hasRepetitions ? nil : huffman(data, room))
      ?? libdeflate_zlib_compress(compressor, filtered.samples, count, data, room)
    // Grey, R G B, and both with alpha.
    let color: UInt8 = [0, 4, 2, 6][bands - 1]
    memory.copyMemory(from: Self.signature, byteCount: 8)
    let header = memory + 16
    header.storeBytes(of: UInt32(width).bigEndian, as: UInt32.self)
    header.storeBytes(of: UInt32(height).bigEndian, toByteOffset: 4, as: UInt32.self)
    (header + 8).copyMemory(from: [8, color, 0, 0, 0], byteCount: 5)
    Self.finishChunk("IHDR", of: 13, at: memory + 8)
    Self.finishChunk("IDAT", of: length, at: data - 8)
    Self.finishChunk("IEND", of: 0, at: data + length + 4)
    return EncodedFile(bytes: memory, count: Self.headLength + 8 + length + 4 + 12)
  }

  private static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

  /// Whether libdeflate makes a sample of the rows smaller than their entropy.
  private func hasRepetitions(_ compressor: OpaquePointer) throws(LibraryError) -> Bool {
    let slice = Self.sampled / Self.slices
    let sample = try PixelMemory(Self.sampled)
    for index in 0..<Self.slices {
      let place = (count - slice) / (Self.slices - 1) * index
      (sample.bytes.baseAddress! + index * slice).copyMemory(from: filtered.samples + place, byteCount: slice)
    }
    let room = libdeflate_zlib_compress_bound(compressor, Self.sampled)
    let compressed = try PixelMemory(room)
    let length = libdeflate_zlib_compress(
      compressor, sample.samples, Self.sampled, compressed.bytes.baseAddress, room)
    var counts = [Int](repeating: 0, count: 256)
    for byte in sample.bytes { counts[Int(byte)] += 1 }
    let bits = counts.reduce(0.0) { $1 == 0 ? $0 : $0 - Double($1) * log2(Double($1) / Double(Self.sampled)) }
    return Double(length) < bits / 8
  }

  private static let (sampled, slices) = (1 << 17, 8)

  /// Compresses the rows without a search for repetitions, except of one byte. Nil if the result needs more room, as
  /// for noise.
  private func huffman(_ data: UnsafeMutableRawPointer, _ room: Int) -> Int? {
    var stream = z_stream()
    let status = deflateInit2_(
      &stream, 1, Z_DEFLATED, MAX_WBITS, 9, Z_RLE, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    guard status == Z_OK else { return nil }
    defer { deflateEnd(&stream) }
    (stream.next_in, stream.avail_in) = (UnsafePointer(filtered.samples), UInt32(count))
    (stream.next_out, stream.avail_out) = (data.assumingMemoryBound(to: UInt8.self), UInt32(room))
    return deflate(&stream, Z_FINISH) == Z_STREAM_END ? Int(stream.total_out) : nil
  }

  /// The signature and IHDR.
  private static let headLength = 8 + 25

  /// Adds length, name and checksum to the content of a chunk.
  private static func finishChunk(_ name: StaticString, of length: Int, at start: UnsafeMutableRawPointer) {
    start.storeBytes(of: UInt32(length).bigEndian, as: UInt32.self)
    start.storeBytes(of: PNGChunks.name(name).bigEndian, toByteOffset: 4, as: UInt32.self)
    let sum = libdeflate_crc32(0, start + 4, length + 4)
    (start + 8 + length).copyMemory(from: withUnsafeBytes(of: sum.bigEndian) { Array($0) }, byteCount: 4)
  }
}
