internal import CJPEG
internal import ImageCodec

/// Reads the pixels of a JPEG, by libjpeg without libvips: of a small image that takes less than half of the time
/// (Tests/Benchmarks/README.md), and libjpeg tells what was damaged.
final class JPEGReader {
  private let reader: UnsafeMutablePointer<cjpeg_reader>

  /// 1 for grey, 3 for RGB.
  private var bands: Int { Int(reader.pointee.jpeg.output_components) }

  /// Whether what was read so far lacked something that libjpeg has made up for.
  var isDamaged: Bool { reader.pointee.errors.is_damaged != 0 }

  /// - Parameters:
  ///   - bytes: the whole file, which must outlive the reader.
  ///   - isStrict: whether a loss of pixels that no restart marker bounds is an error. It is one in any case where the
  ///     file is cut.
  init(_ bytes: UnsafeRawBufferPointer, isStrict: Bool) throws(LibraryError) {
    reader = .allocate(capacity: 1)
    reader.initialize(to: cjpeg_reader())
    try check(cjpeg_open(reader, bytes.baseAddress, bytes.count, isStrict ? 1 : 0))
  }

  /// Also when `init` throws: all that is stored is there by then.
  deinit {
    cjpeg_close_reader(reader)
    reader.deallocate()
  }

  /// Decodes every pixel.
  func readAll() throws(LibraryError) {
    try forEachRow(above: Int(reader.pointee.jpeg.image_height)) { _, _ in }
  }

  /// The pixels of a part, a byte for each band.
  func pixels(_ crop: Transform.Crop) throws(LibraryError) -> [UInt8] {
    var pixels: [UInt8] = []
    try forEachRow(above: crop.y + crop.height) { index, row in
      guard index >= crop.y else { return }
      if index == crop.y { pixels.reserveCapacity(crop.width * crop.height * bands) }
      pixels += UnsafeBufferPointer(start: row + crop.x * bands, count: crop.width * bands)
    }
    return pixels
  }

  private func forEachRow(above end: Int, _ body: (Int, UnsafePointer<UInt8>) -> Void) throws(LibraryError) {
    try check(cjpeg_start(reader, 1))
    let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: Int(reader.pointee.jpeg.output_width) * bands + 1)
    defer { memory.deallocate() }
    // libjpeg-turbo writes past the cache where it finds an aligned row, and reading it back takes half as long as
    // decoding.
    let row = memory + 1
    for index in 0..<end {
      try check(cjpeg_read_row(reader, row))
      body(index, row)
    }
    cjpeg_look_for_end(reader)
  }

  /// The pixels, decoded from the top when they are read, in up to `shrink` (1, 2, 4 or 8) times fewer on each side. The
  /// reader must outlive them.
  ///
  /// - Parameter header: what libvips makes of the same file: what the pixels mean.
  func picture(like header: Picture, shrink: Int) throws(LibraryError) -> Picture {
    try check(cjpeg_start(reader, Int32(shrink)))
    return try header.reading(
      width: Int(reader.pointee.jpeg.output_width), height: Int(reader.pointee.jpeg.output_height),
      { context, row in
        let reader = context.unsafelyUnwrapped.assumingMemoryBound(to: cjpeg_reader.self)
        guard let row, cjpeg_read_row(reader, row) != 0 else { return cjpeg_message(reader) }
        cjpeg_look_for_end(reader)
        return nil
      }, reader)
  }

  /// Reads the image in another size: each component from its own samples, of which there are fewer for colours.
  ///
  /// - Parameters:
  ///   - crop: what of the image is wanted.
  ///   - shrink: 1, 2, 4 or 8. So much smaller libjpeg may make the image.
  func resampled(
    _ crop: Transform.Crop, shrink: Int, to size: (width: Int, height: Int)
  ) throws(LibraryError) -> Resampler {
    try check(cjpeg_start_planes(reader, Int32(shrink)))
    let planes = withUnsafeBytes(of: &reader.pointee.planes) { $0.bindMemory(to: cjpeg_plane.self).prefix(bands) }
    let resampler = Resampler(
      reader.pointee.jpeg.jpeg_color_space == JCS_YCbCr ? .yCbCr : .plain,
      planes.map { $0.part(crop) }, atOnce: planes.map { Int($0.row_count) }.max() ?? 0, to: size)
    while !resampler.isComplete {
      try check(cjpeg_read_planes(reader))
      for (index, plane) in planes.enumerated() {
        for row in 0..<Int(plane.row_count) { resampler.give(plane.rows[row]!, to: index) }
      }
      resampler.addRows()
    }
    cjpeg_look_for_end(reader)
    return resampler
  }

  private func check(_ status: Int32) throws(LibraryError) {
    if status == 0 { throw LibraryError(reader.pointee.errors.text) }
  }
}

extension cjpeg_plane {
  /// Where a part of the image lies in this plane.
  fileprivate func part(_ crop: Transform.Crop) -> Resampler.Part {
    Resampler.Part(
      across: Self.place(crop.x, across, across_of)..<Self.place(crop.x + crop.width, across, across_of),
      down: Self.place(crop.y, down, down_of)..<Self.place(crop.y + crop.height, down, down_of))
  }

  /// What should be whole is: the end of the image is not a little behind that of the plane.
  private static func place(_ pixel: Int, _ samples: Int32, _ pixels: Int32) -> Double {
    Double(pixel * Int(samples)) / Double(pixels)
  }
}

extension cjpeg_errors {
  var text: String { withUnsafeBytes(of: message) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) } }
}
