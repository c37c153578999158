/// The orientation in EXIF data, which is a TIFF file within the image (CIPA DC-008).
///
/// Only the first EXIF block of an image counts: no format permits a second, and parsing each may take long.
enum EXIF {
  /// The bytes before the TIFF header in JPEG, and by mistake also in other formats.
  static let mark = Array("Exif\0\0".utf8)

  /// The orientation, 1 to 8; 1 if the data is damaged or has no orientation.
  static func orientation(_ reader: inout HeaderReader, at start: Int) -> Int {
    do throws(ImageHeaderError) {
      reader.exifStart = start
      let begin = try reader.bytes(start, count: 6) == mark ? start + 6 : start
      let directory = try TIFFDirectory(&reader, fileStart: begin)
      return try directory.orientation(&reader)
    } catch {
      return 1
    }
  }
}
