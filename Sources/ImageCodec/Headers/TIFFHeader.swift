/// TIFF and BigTIFF: the first directory, and the number of directories after it.
package enum TIFFHeader {
  private static let maxPages = 4096

  static func read(_ reader: inout HeaderReader) throws(ImageHeaderError) -> ImageHeader {
    let directory = try TIFFDirectory(&reader, fileStart: 0)
    let orientation = try directory.orientation(&reader)
    if directory.isDNG(&reader) {
      let raw = try rawPicture(&reader, of: directory)
      return ImageHeader(
        .tiff, width: try raw.number(.width, &reader), height: try raw.number(.height, &reader),
        orientation: orientation)
    }
    guard let width = try directory.number(.width, &reader), let height = try directory.number(.height, &reader) else {
      throw .impossible("the TIFF has no width or height")
    }
    return ImageHeader(
      .tiff, width: width, height: height, frames: pages(&reader, from: directory), orientation: orientation)
  }

  /// Whether the file is a DNG: a raw photo, of which the first directory is usually a preview.
  package static func isDNG(_ source: any ByteSource) -> Bool {
    var reader = HeaderReader(source)
    return (try? TIFFDirectory(&reader, fileStart: 0))?.isDNG(&reader) ?? false
  }

  /// The directory of a DNG whose picture has the full resolution: the first one or one of its children (DNG 1.4,
  /// NewSubFileType).
  static func rawPicture(
    _ reader: inout HeaderReader, of first: TIFFDirectory
  ) throws(ImageHeaderError) -> TIFFDirectory {
    for start in try first.numbers(.children, &reader) {
      let child = try first.directory(at: start, &reader)
      if try child.number(.kind, &reader) ?? 0 == 0 { return child }
    }
    return first
  }

  /// Whether the first image is in YCbCr (TIFF 6.0 section 21) without JPEG compression (TIFF Technical Note 2). libtiff
  /// then returns luma and chroma, which libvips takes for RGB; so it does for the older JPEG compression, 6.
  package static func isPlainYCbCr(_ source: any ByteSource) -> Bool {
    var reader = HeaderReader(source)
    do throws(ImageHeaderError) {
      let directory = try TIFFDirectory(&reader, fileStart: 0)
      guard try directory.number(.photometric, &reader) == 6 else { return false }
      return try directory.number(.compression, &reader).map { $0 != 7 } ?? true
    } catch {
      return false
    }
  }

  /// The index of the extra sample that is alpha (ExtraSamples, TIFF 6.0 page 31). The first if the file does not say
  /// what they are, nil if it says that none is alpha.
  package static func alpha(_ source: any ByteSource) -> Int? {
    var reader = HeaderReader(source)
    do throws(ImageHeaderError) {
      let directory = try TIFFDirectory(&reader, fileStart: 0)
      let kinds = try directory.numbers(.extraSamples, &reader)
      return kinds.isEmpty ? 0 : kinds.firstIndex { $0 == 1 || $0 == 2 }
    } catch {
      return 0
    }
  }

  private static func pages(_ reader: inout HeaderReader, from first: TIFFDirectory) -> Int {
    var directory = first
    var seen: Set = [first.start]
    do throws(ImageHeaderError) {
      while seen.count < maxPages, let next = try directory.next(&reader), seen.insert(next.start).inserted {
        directory = next
      }
    } catch {
      // The pages after the first may be damaged; those counted so far count.
    }
    return seen.count
  }
}

/// One image file directory (TIFF 6.0 section 2).
struct TIFFDirectory {
  enum Tag: Int {
    case kind = 254
    case width = 256
    case height = 257
    case compression = 259
    case photometric = 262
    case orientation = 274
    case children = 330
    case extraSamples = 338
    case dngVersion = 50_706
  }

  /// The base of offsets in the file.
  let fileStart: Int
  let isLittleEndian: Bool
  let isBig: Bool
  let start: Int
  let entryCount: Int

  /// The first directory of the TIFF data that begins at `fileStart`.
  init(_ reader: inout HeaderReader, fileStart: Int) throws(ImageHeaderError) {
    let order = try reader.big16(fileStart)
    guard order == 0x4949 || order == 0x4D4D else { throw .impossible("the TIFF data has no byte order") }
    let isLittleEndian = order == 0x4949
    let version = try reader.uint64(fileStart + 2, bytes: 2, isLittleEndian: isLittleEndian)
    guard version == 42 || version == 43 else { throw .impossible("the TIFF data has an unknown version") }
    let first = try reader.uint64(
      fileStart + (version == 43 ? 8 : 4), bytes: version == 43 ? 8 : 4, isLittleEndian: isLittleEndian)
    try self.init(
      &reader, fileStart: fileStart, isLittleEndian: isLittleEndian, isBig: version == 43, start: reader.offset(first))
  }

  init(
    _ reader: inout HeaderReader, fileStart: Int, isLittleEndian: Bool, isBig: Bool, start: Int
  ) throws(ImageHeaderError) {
    (self.fileStart, self.start) = (fileStart, start)
    (self.isLittleEndian, self.isBig) = (isLittleEndian, isBig)
    let count = try reader.uint64(fileStart + start, bytes: isBig ? 8 : 2, isLittleEndian: isLittleEndian)
    guard count <= 65_535 else { throw .impossible("a TIFF directory must not have more than 65535 entries") }
    entryCount = Int(count)
  }

  /// The value of a tag with a single integer; nil if the tag is missing or of another type.
  func number(_ tag: Tag, _ reader: inout HeaderReader) throws(ImageHeaderError) -> Int? {
    guard let field = try field(tag, &reader) else { return nil }
    return try number(field.place, length: field.length, &reader)
  }

  /// The values of an integer tag, at most the first ten; empty if the tag is missing.
  func numbers(_ tag: Tag, _ reader: inout HeaderReader) throws(ImageHeaderError) -> [Int] {
    guard let field = try field(tag, &reader) else { return [] }
    var place = field.place
    if field.count * field.length > (isBig ? 8 : 4) {
      place = fileStart + (try reader.offset(try integer(&reader, place, bytes: isBig ? 8 : 4)))
    }
    var numbers: [Int] = []
    for index in 0..<min(field.count, 10) {
      numbers.append(try number(place + index * field.length, length: field.length, &reader))
    }
    return numbers
  }

  /// The position of a tag's values or of their offset, their count and their size in bytes; nil if they are not
  /// integers.
  private func field(
    _ tag: Tag, _ reader: inout HeaderReader
  ) throws(ImageHeaderError) -> (place: Int, count: Int, length: Int)? {
    for index in 0..<entryCount {
      let entry = firstEntry + index * entryLength
      guard try integer(&reader, entry, bytes: 2) == UInt64(tag.rawValue) else { continue }
      let count = try integer(&reader, entry + 4, bytes: isBig ? 8 : 4)
      let length: Int
      switch try integer(&reader, entry + 2, bytes: 2) {
      case 1: length = 1
      case 3: length = 2
      case 4, 13: length = 4
      case 16 where isBig, 18 where isBig: length = 8
      default: return nil
      }
      return (entry + (isBig ? 12 : 8), Int(clamping: min(count, 65_535)), length)
    }
    return nil
  }

  private func number(_ place: Int, length: Int, _ reader: inout HeaderReader) throws(ImageHeaderError) -> Int {
    guard let number = Int(exactly: try integer(&reader, place, bytes: length)), number <= Int(UInt32.max) else {
      throw .impossible("a number in a TIFF directory is too large")
    }
    return number
  }

  func isDNG(_ reader: inout HeaderReader) -> Bool { (try? field(.dngVersion, &reader)) != nil }

  func orientation(_ reader: inout HeaderReader) throws(ImageHeaderError) -> Int {
    let orientation = try number(.orientation, &reader) ?? 1
    return (1...8).contains(orientation) ? orientation : 1
  }

  func next(_ reader: inout HeaderReader) throws(ImageHeaderError) -> TIFFDirectory? {
    let link = try integer(&reader, firstEntry + entryCount * entryLength, bytes: isBig ? 8 : 4)
    guard link != 0 else { return nil }
    return try TIFFDirectory(
      &reader, fileStart: fileStart, isLittleEndian: isLittleEndian, isBig: isBig, start: reader.offset(link))
  }

  var entryLength: Int { isBig ? 20 : 12 }

  var firstEntry: Int { fileStart + start + (isBig ? 8 : 2) }

  func integer(_ reader: inout HeaderReader, _ offset: Int, bytes: Int) throws(ImageHeaderError) -> UInt64 {
    try reader.uint64(offset, bytes: bytes, isLittleEndian: isLittleEndian)
  }
}

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
