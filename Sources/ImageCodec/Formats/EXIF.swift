/// The orientation in EXIF data, which is a TIFF file within the image (CIPA DC-008).
///
/// The first of an image counts. No format has room for a second, and each may take long to go through.
enum EXIF {
  /// What stands before the TIFF header in JPEG, and by mistake in other formats.
  static let mark = Array("Exif\0\0".utf8)

  /// 1 to 8, and 1 where the data is damaged or says nothing.
  static func orientation(_ reader: inout HeaderReader, at start: Int) -> Int {
    do throws(ImageHeaderError) {
      let begin = try reader.bytes(start, count: 6) == mark ? start + 6 : start
      let directory = try TIFFDirectory(&reader, fileStart: begin)
      return try directory.orientation(&reader)
    } catch {
      return 1
    }
  }
}
