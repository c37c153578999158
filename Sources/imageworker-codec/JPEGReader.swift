internal import CJPEG

/// Reads the pixels of a JPEG, by libjpeg without libvips: of a small image that takes less than half of the time
/// (Tests/Benchmarks/README.md).
final class JPEGReader {
  private let reader: UnsafeMutablePointer<cjpeg_reader>
  let width: Int
  let height: Int
  /// 1 for grey, 3 for RGB, 4 for CMYK as it is stored.
  let bands: Int

  /// - Parameters:
  ///   - bytes: the whole file, which must outlive the reader.
  ///   - shrink: 1, 2, 4 or 8. So much smaller the image is, its size rounded up.
  init(_ bytes: UnsafeRawBufferPointer, shrink: Int) throws(LibraryError) {
    reader = .allocate(capacity: 1)
    reader.initialize(to: cjpeg_reader())
    guard cjpeg_open(reader, bytes.baseAddress, bytes.count) != 0, cjpeg_start(reader, Int32(shrink)) != 0 else {
      let error = Self.error(of: reader)
      Self.close(reader)
      throw error
    }
    width = Int(reader.pointee.jpeg.output_width)
    height = Int(reader.pointee.jpeg.output_height)
    bands = Int(reader.pointee.jpeg.output_components)
  }

  deinit { Self.close(reader) }

  /// Reads from the top to the last of these rows.
  func forEachRow(in rows: Range<Int>, _ body: (UnsafePointer<UInt8>) -> Void) throws(LibraryError) {
    let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: width * bands + 1)
    defer { memory.deallocate() }
    // libjpeg-turbo writes past the cache where it finds an aligned row, and reading it back takes half as long as decoding.
    let row = memory + 1
    for index in 0..<rows.upperBound {
      guard cjpeg_read_row(reader, row) != 0 else { throw Self.error(of: reader) }
      if index >= rows.lowerBound { body(row) }
    }
  }

  private static func close(_ reader: UnsafeMutablePointer<cjpeg_reader>) {
    cjpeg_close_reader(reader)
    reader.deallocate()
  }

  private static func error(of reader: UnsafeMutablePointer<cjpeg_reader>) -> LibraryError {
    LibraryError(reader.pointee.errors.text)
  }
}

extension cjpeg_errors {
  var text: String { withUnsafeBytes(of: message) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) } }
}
