package import CJPEG
package import ImageCodec
internal import Platform

/// Decodes a JPEG with libjpeg instead of libvips: a small image takes less than half of the time
/// (Tests/Benchmarks/README.md), and libjpeg reports damage.
package final class JPEGReader: RowReader {
  package let reader: UnsafeMutablePointer<cjpeg_reader>

  /// The bands: 1 for grey, 3 for RGB.
  package var bands: Int { Int(reader.pointee.jpeg.output_components) }

  /// The bands of the file: 1 for grey, 3 for colours.
  package var storedBands: Int { Int(reader.pointee.jpeg.num_components) }

  /// The size as it is stored.
  package var size: (width: Int, height: Int) {
    (Int(reader.pointee.jpeg.image_width), Int(reader.pointee.jpeg.image_height))
  }

  var isPlain: Bool { [JCS_GRAYSCALE, JCS_YCbCr, JCS_RGB].contains(reader.pointee.jpeg.jpeg_color_space) }

  /// The ICC profile before the first scan. Known until the image has been decoded.
  package var profile: [UInt8]? {
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = cjpeg_profile(reader, &bytes)
    guard count > 0, let bytes else { return nil }
    defer { free(bytes) }
    return Array(UnsafeBufferPointer(start: bytes, count: count))
  }

  /// Whether the data so far lacked something that libjpeg has replaced.
  package var isDamaged: Bool { reader.pointee.errors.is_damaged != 0 }

  /// - Parameters:
  ///   - bytes: the whole file, which must outlive the reader.
  ///   - isStrict: whether a loss of pixels that no restart marker bounds is an error. In a truncated file it always
  ///     is.
  package init(_ bytes: UnsafeRawBufferPointer, isStrict: Bool) throws(LibraryError) {
    reader = .allocate(capacity: 1)
    reader.initialize(to: cjpeg_reader())
    try check(cjpeg_open(reader, bytes.baseAddress, bytes.count, isStrict ? 1 : 0))
  }

  /// Also runs if `init` throws: all stored properties are initialised by then.
  deinit {
    cjpeg_close_reader(reader)
    reader.deallocate()
  }

  /// The pixels of a part of the image, one byte for each band.
  package func pixels(_ crop: Transform.Crop) throws -> [UInt8] {
    var pixels: [UInt8] = []
    try forEachRow(above: crop.y + crop.height) { index, row in
      guard index >= crop.y else { return }
      if index == crop.y { pixels.reserveCapacity(crop.width * crop.height * bands) }
      pixels += UnsafeBufferPointer(start: row + crop.x * bands, count: crop.width * bands)
    }
    return pixels
  }

  /// Passes the rows above this one, with their numbers, in memory that holds one row.
  package func forEachRow(above end: Int, _ body: (Int, UnsafePointer<UInt8>) throws -> Void) throws {
    try check(cjpeg_start(reader, 1))
    let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: Int(reader.pointee.jpeg.output_width) * bands + 1)
    defer { memory.deallocate() }
    // libjpeg-turbo bypasses the cache if a row is aligned. Reading the row back then takes half as long as decoding
    // it.
    let row = memory + 1
    for index in 0..<end {
      try check(cjpeg_read_row(reader, row))
      try body(index, row)
    }
    cjpeg_look_for_end(reader)
  }

  /// Passes the rows of the image in another size. Each component is resampled from its own samples, of which chroma may
  /// have fewer.
  ///
  /// - Parameters:
  ///   - crop: the part of the image to use.
  ///   - shrink: 1, 2, 4 or 8: the factor by which libjpeg may reduce the image.
  package func resample(
    _ crop: Transform.Crop, shrink: Int, to size: (width: Int, height: Int), _ take: Resampler.Taker
  ) throws {
    try check(cjpeg_start_planes(reader, Int32(shrink)))
    let planes = withUnsafeBytes(of: &reader.pointee.planes) { $0.bindMemory(to: cjpeg_plane.self).prefix(bands) }
    let resampler = Resampler(
      reader.pointee.jpeg.jpeg_color_space == JCS_YCbCr ? .yCbCr : .plain,
      planes.map { $0.part(crop) }, atOnce: planes.map { Int($0.row_count) }.max() ?? 0, to: size)
    while !resampler.isComplete {
      try check(cjpeg_read_planes(reader))
      for (index, plane) in planes.enumerated() { resampler.add(plane.rows, count: Int(plane.row_count), to: index) }
      try resampler.addRows(take)
    }
    cjpeg_look_for_end(reader)
  }

  package func check(_ status: Int32) throws(LibraryError) {
    if status == 0 { throw LibraryError(reader.pointee.errors.text) }
  }
}

extension cjpeg_plane {
  /// The position of a part of the image in this plane.
  fileprivate func part(_ crop: Transform.Crop) -> Resampler.Part {
    Resampler.Part(
      across: Self.place(crop.x, across, across_of)..<Self.place(crop.x + crop.width, across, across_of),
      down: Self.place(crop.y, down, down_of)..<Self.place(crop.y + crop.height, down, down_of))
  }

  /// Rounded so that the end of the image is not slightly beyond the end of the plane.
  private static func place(_ pixel: Int, _ samples: Int32, _ pixels: Int32) -> Double {
    Double(pixel * Int(samples)) / Double(pixels)
  }
}

extension cjpeg_errors {
  var text: String { withUnsafeBytes(of: message) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) } }
}
