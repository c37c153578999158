internal import CJPEG

/// Reads the pixels of a JPEG, by libjpeg without libvips: of a small image that takes less than half of the time
/// (Tests/Benchmarks/README.md).
final class JPEGReader {
  private let reader: UnsafeMutablePointer<cjpeg_reader>

  var width: Int { Int(reader.pointee.jpeg.output_width) }
  var height: Int { Int(reader.pointee.jpeg.output_height) }
  /// 1 for grey, 3 for RGB, 4 for CMYK as it is stored.
  var bands: Int { Int(reader.pointee.jpeg.output_components) }

  /// - Parameters:
  ///   - bytes: the whole file, which must outlive the reader.
  ///   - shrink: 1, 2, 4 or 8. So much smaller the image is, its size rounded up.
  ///   - isStrict: whether data that lack pixels are an error, and not grey.
  init(_ bytes: UnsafeRawBufferPointer, shrink: Int, isStrict: Bool) throws(LibraryError) {
    reader = .allocate(capacity: 1)
    reader.initialize(to: cjpeg_reader())
    try check(cjpeg_open(reader, bytes.baseAddress, bytes.count, isStrict ? 1 : 0))
    try check(cjpeg_start(reader, Int32(shrink)))
  }

  /// Also when `init` throws: all that is stored is there by then.
  deinit {
    cjpeg_close_reader(reader)
    reader.deallocate()
  }

  /// Reads from the top to the last of these rows.
  func forEachRow(in rows: Range<Int>, _ body: (UnsafePointer<UInt8>) -> Void) throws(LibraryError) {
    let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: width * bands + 1)
    defer { memory.deallocate() }
    // libjpeg-turbo writes past the cache where it finds an aligned row, and reading it back takes half as long as
    // decoding.
    let row = memory + 1
    for index in 0..<rows.upperBound {
      try check(cjpeg_read_row(reader, row))
      if index >= rows.lowerBound { body(row) }
    }
  }

  private func check(_ status: Int32) throws(LibraryError) {
    if status == 0 { throw LibraryError(reader.pointee.errors.text) }
  }
}

extension cjpeg_errors {
  var text: String { withUnsafeBytes(of: message) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) } }
}
