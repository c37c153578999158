internal import Text

/// Reads the fields of EXIF data: a TIFF file with a directory for the camera and one for the position (CIPA DC-008
/// sections 4.6.3 to 4.6.8). Damaged fields are left out.
package struct EXIFReader {
  private var reader: HeaderReader
  private let start: Int

  /// The fields of a JPEG, PNG, WebP or TIFF, whose EXIF data is at a known place of the file.
  package static func read(file: any ByteSource, _ format: ImageFormat) -> [EXIFField: EXIFValue] {
    ImageHeader.exifStart(file, format: format).map { read(file, at: $0, Set(EXIFField.allCases)) } ?? [:]
  }

  private init(_ source: any ByteSource, at offset: Int) {
    reader = HeaderReader(source)
    let hasMark = (try? reader.bytes(offset, count: EXIF.mark.count)) == EXIF.mark
    start = hasMark ? offset + EXIF.mark.count : offset
  }

  /// The fields, of which at most `fields` are read.
  ///
  /// - Parameter offset: the position of the TIFF header, or of the `Exif` mark before it.
  package static func read(
    _ source: any ByteSource, at offset: Int = 0, _ fields: Set<EXIFField>
  ) -> [EXIFField: EXIFValue] {
    var this = EXIFReader(source, at: offset)
    return this.values().filter { fields.contains($0.key) }
  }

  /// Whether the data has a latitude or a longitude, valid or not. Nil if it is damaged before this is certain.
  package static func hasPosition(_ source: any ByteSource, at offset: Int) -> Bool? {
    var this = EXIFReader(source, at: offset)
    guard let main = try? TIFFDirectory(&this.reader, fileStart: this.start) else { return nil }
    guard let pointer = this.entries(of: main)[34_853] else { return main.isWhole(this.reader) ? false : nil }
    guard let position = this.directory(pointer, of: main) else { return nil }
    if this.entries(of: position).keys.contains(where: { $0 == 2 || $0 == 4 }) { return true }
    return position.isWhole(this.reader) ? false : nil
  }

  private mutating func values() -> [EXIFField: EXIFValue] {
    guard let main = try? TIFFDirectory(&reader, fileStart: start) else { return [:] }
    var values: [EXIFField: EXIFValue] = [:]
    let first = entries(of: main)
    values[.orientation] = number(first[EXIFField.orientation.tag], in: main).flatMap {
      1...8 ~= $0 ? .number($0) : nil
    }
    for field in [EXIFField.make, .model, .artist, .copyright] { values[field] = text(first[field.tag], in: main) }
    if let camera = directory(first[34_665], of: main) { addCamera(camera, to: &values) }
    if let position = directory(first[34_853], of: main) { addPosition(position, to: &values) }
    return values
  }

  private mutating func addCamera(_ camera: TIFFDirectory, to values: inout [EXIFField: EXIFValue]) {
    let entries = entries(of: camera)
    // Zero means unknown in these fields.
    for field in [EXIFField.exposureTime, .fNumber, .iso, .focalLength, .focalLengthIn35mm] {
      guard let number = number(entries[field.tag], in: camera), number > 0 else { continue }
      values[field] = .number(number)
    }
    values[.lensModel] = text(entries[EXIFField.lensModel.tag], in: camera)
    let date = bytes(entries[EXIFField.dateTimeOriginal.tag], in: camera)
    values[.dateTimeOriginal] = Self.date(date, offset: bytes(entries[36_881], in: camera)).map { .text($0) }
  }

  private mutating func addPosition(_ position: TIFFDirectory, to values: inout [EXIFField: EXIFValue]) {
    let entries = entries(of: position)
    guard let latitude = angle(entries[2], side: entries[1], of: ("N", "S"), max: 90, in: position),
      let longitude = angle(entries[4], side: entries[3], of: ("E", "W"), max: 180, in: position)
    else { return }
    (values[.latitude], values[.longitude]) = (.number(latitude), .number(longitude))
    guard let altitude = number(entries[6], in: position) else { return }
    let isBelow = number(entries[5], in: position) == 1
    values[.altitude] = .number(isBelow ? -altitude : altitude)
  }

  // MARK: - Values

  private mutating func entries(of directory: TIFFDirectory) -> [Int: TIFFDirectory.Entry] {
    directory.entries(&reader)
  }

  private mutating func directory(_ entry: TIFFDirectory.Entry?, of parent: TIFFDirectory) -> TIFFDirectory? {
    guard let offset = number(entry, in: parent), offset > 0, offset < Double(reader.count) else { return nil }
    return try? parent.directory(at: Int(offset), &reader)
  }

  private mutating func number(_ entry: TIFFDirectory.Entry?, in directory: TIFFDirectory) -> Double? {
    guard let entry else { return nil }
    return try? directory.number(entry, 0, &reader)
  }

  /// The bytes of a text up to the first zero; empty if they are too many even without the spaces around them.
  private mutating func bytes(_ entry: TIFFDirectory.Entry?, in directory: TIFFDirectory) -> ArraySlice<UInt8> {
    let limit = 2 * EXIFValue.maxLength
    guard let entry, let bytes = try? directory.bytes(entry, atMost: limit, &reader) else { return [] }
    let text = bytes.prefix { $0 != 0 }
    return text.count < limit ? text : []
  }

  private mutating func text(_ entry: TIFFDirectory.Entry?, in directory: TIFFDirectory) -> EXIFValue? {
    EXIFValue(text: bytes(entry, in: directory))
  }

  /// Degrees, minutes and seconds as degrees, rounded to a centimetre. Nil if the side of the equator or of the prime
  /// meridian is not known.
  private mutating func angle(
    _ entry: TIFFDirectory.Entry?, side: TIFFDirectory.Entry?, of sides: (positive: String, negative: String),
    max: Double, in directory: TIFFDirectory
  ) -> Double? {
    let side = String(decoding: bytes(side, in: directory), as: UTF8.self)
    guard let entry, entry.count == 3, side == sides.positive || side == sides.negative else { return nil }
    var degrees = 0.0
    for (index, unit) in [1.0, 60, 3600].enumerated() {
      guard let part = try? directory.number(entry, index, &reader), part >= 0 else { return nil }
      degrees += part / unit
    }
    guard degrees <= max else { return nil }
    // A negative zero becomes zero.
    return (degrees * 1e7).rounded() / (side == sides.negative ? -1e7 : 1e7) + 0
  }

  /// A date as `2024-05-01T12:30:00`, with the offset from UTC if the file has it. Nil if it is not a date.
  ///
  /// - Parameters:
  ///   - text: `2024:05:01 12:30:00`.
  ///   - offset: `+02:00`, or anything that is ignored.
  static func date(_ text: ArraySlice<UInt8>, offset: ArraySlice<UInt8>) -> String? {
    guard let parts = numbers(text, like: "0000:00:00 00:00:00"), parts[0] > 0,
      CivilTime(
        year: parts[0], month: parts[1], day: parts[2], hour: parts[3], minute: parts[4], second: parts[5]
      ).exists
    else { return nil }
    let digits = text.map { Character(UnicodeScalar($0)) }
    let date = "\(String(digits[..<10].map { $0 == ":" ? "-" : $0 }))T\(String(digits[11...]))"
    guard let first = offset.first, "+-".utf8.contains(first), let parts = numbers(offset.dropFirst(), like: "00:00"),
      parts[0] < 24, parts[1] < 60
    else { return date }
    return date + String(decoding: offset, as: UTF8.self)
  }

  /// The numbers of a text in which each zero of the pattern stands for a digit. Nil for another text.
  private static func numbers(_ text: ArraySlice<UInt8>, like pattern: StaticString) -> [Int]? {
    guard text.count == pattern.utf8CodeUnitCount else { return nil }
    var numbers = [0]
    for (index, byte) in text.enumerated() {
      let expected = pattern.utf8Start[index]
      if expected == UInt8(ascii: "0") {
        guard UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte else { return nil }
        numbers[numbers.count - 1] = numbers[numbers.count - 1] * 10 + Int(byte - UInt8(ascii: "0"))
      } else {
        guard byte == expected else { return nil }
        numbers.append(0)
      }
    }
    return numbers
  }
}
