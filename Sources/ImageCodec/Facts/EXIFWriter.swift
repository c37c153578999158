/// Writes EXIF data: a big-endian TIFF file with a directory for the camera and one for the position (CIPA DC-008
/// sections 4.6.2 to 4.6.8). `EXIFReader` reads the same values from it.
package enum EXIFWriter {
  /// The data of fields from `EXIFReader`, at most 3 KB. A number that its field cannot hold is left out. Empty without
  /// fields.
  package static func data(_ fields: [EXIFField: EXIFValue]) -> [UInt8] {
    var (main, camera, position) = (Directory(), Directory(), Directory())
    for (field, value) in fields {
      switch (field, value) {
      case (.make, .text(let text)), (.model, .text(let text)), (.artist, .text(let text)),
        (.copyright, .text(let text)):
        main.add(field.tag, text)
      case (.orientation, .number(let number)): main.add(field.tag, integer: number)
      case (.lensModel, .text(let text)): camera.add(field.tag, text)
      case (.dateTimeOriginal, .text(let text)): camera.add(date: text)
      case (.exposureTime, .number(let number)), (.fNumber, .number(let number)), (.focalLength, .number(let number)):
        camera.add(field.tag, positive: number)
      case (.iso, .number(let number)), (.focalLengthIn35mm, .number(let number)):
        camera.add(field.tag, integer: number)
      case (.latitude, .number(let number)): position.add(field.tag, angle: number, number < 0 ? "S" : "N")
      case (.longitude, .number(let number)): position.add(field.tag, angle: number, number < 0 ? "W" : "E")
      case (.altitude, .number(let number)): position.add(altitude: number)
      default: break
      }
    }
    if !camera.isEmpty { camera.add(Directory.version, .undefined, Array("0232".utf8)) }
    if !position.isEmpty { position.add(Directory.positionVersion, .byte, [2, 3, 0, 0]) }
    let children = [(Directory.camera, camera), (Directory.position, position)].filter { !$0.1.isEmpty }
    if main.isEmpty, children.isEmpty { return [] }
    for (tag, _) in children { main.add(tag, .long, big(0)) }
    let start = 8
    var next = start + main.bytes(at: start).count
    var rest: [UInt8] = []
    for (tag, child) in children {
      main.add(tag, .long, big(next))
      let bytes = child.bytes(at: next)
      next += bytes.count
      rest += bytes
    }
    return Array("MM\0*".utf8) + big(start) + main.bytes(at: start) + rest
  }

  fileprivate static func big(_ number: Int) -> [UInt8] {
    withUnsafeBytes(of: UInt32(truncatingIfNeeded: number).bigEndian) { Array($0) }
  }

  /// A fraction of 32-bit numbers: the first convergent of the value's continued fraction that is equal to it, or the
  /// last one that fits. 0.004 becomes 1/250. Nil if the value is too large.
  static func fraction(_ value: Double) -> (top: Int, bottom: Int)? {
    let limit = Double(UInt32.max)
    guard (0...limit).contains(value) else { return nil }
    var (last, this) = ((top: 0.0, bottom: 1.0), (top: 1.0, bottom: 0.0))
    var rest = value
    while rest.isFinite {
      let whole = rest.rounded(.down)
      let next = (top: whole * this.top + last.top, bottom: whole * this.bottom + last.bottom)
      guard max(next.top, next.bottom) <= limit else { break }
      (last, this) = (this, next)
      if next.top / next.bottom == value { break }
      rest = 1 / (rest - whole)
    }
    return (Int(this.top), Int(this.bottom))
  }
}

/// A directory of fields (TIFF 6.0 section 2).
private struct Directory {
  static let (camera, position, version, offsetTimeOriginal) = (34_665, 34_853, 36_864, 36_881)
  static let (positionVersion, altitudeReference) = (0, 5)

  enum FieldType: UInt8 {
    case byte = 1
    case ascii, short, long, rational
    case undefined = 7

    var length: Int { [.short: 2, .long: 4, .rational: 8][self] ?? 1 }
  }

  private var entries: [Int: (type: FieldType, value: [UInt8])] = [:]
  var isEmpty: Bool { entries.isEmpty }

  mutating func add(_ tag: Int, _ type: FieldType, _ value: [UInt8]) { entries[tag] = (type, value) }

  mutating func add(_ tag: Int, _ text: some StringProtocol) { add(tag, .ascii, Array(text.utf8) + [0]) }

  mutating func add(_ tag: Int, integer number: Double) {
    guard let number = UInt32(exactly: number) else { return }
    let bytes = EXIFWriter.big(Int(number))
    if number <= UInt16.max { add(tag, .short, Array(bytes[2...])) } else { add(tag, .long, bytes) }
  }

  /// Zero means unknown.
  mutating func add(_ tag: Int, positive number: Double) {
    guard let (top, bottom) = EXIFWriter.fraction(number), top > 0 else { return }
    add(tag, .rational, EXIFWriter.big(top) + EXIFWriter.big(bottom))
  }

  /// - Parameter date: as `EXIFReader.date` returns it.
  mutating func add(date: String) {
    let date = date.utf8
    guard date.count >= 19 else { return }
    let day = date.prefix(10).map { $0 == UInt8(ascii: "-") ? UInt8(ascii: ":") : $0 }
    add(EXIFField.dateTimeOriginal.tag, .ascii, day + [0x20] + date.dropFirst(11).prefix(8) + [0])
    if date.count > 19 { add(Self.offsetTimeOriginal, .ascii, Array(date.dropFirst(19)) + [0]) }
  }

  /// Degrees, minutes, and ten-thousandths of a second, which are 3 mm. The side is in the field before.
  mutating func add(_ tag: Int, angle: Double, _ side: String) {
    guard abs(angle) <= 180 else { return }
    let parts = Int((abs(angle) * 36_000_000).rounded())
    let numbers = [parts / 36_000_000, 1, parts / 600_000 % 60, 1, parts % 600_000, 10_000]
    add(tag, .rational, numbers.flatMap(EXIFWriter.big))
    add(tag - 1, side)
  }

  mutating func add(altitude: Double) {
    guard let (top, bottom) = EXIFWriter.fraction(abs(altitude)) else { return }
    add(EXIFField.altitude.tag, .rational, EXIFWriter.big(top) + EXIFWriter.big(bottom))
    add(Self.altitudeReference, .byte, [altitude < 0 ? 1 : 0])
  }

  /// - Parameter start: the place of the directory in the file.
  func bytes(at start: Int) -> [UInt8] {
    var list = Array(EXIFWriter.big(entries.count)[2...])
    var values: [UInt8] = []
    for (tag, entry) in entries.sorted(by: { $0.key < $1.key }) {
      let (type, value) = entry
      list += EXIFWriter.big(tag << 16 | Int(type.rawValue)) + EXIFWriter.big(value.count / type.length)
      if value.count <= 4 {
        list += value + [UInt8](repeating: 0, count: 4 - value.count)
      } else {
        list += EXIFWriter.big(start + 2 + 12 * entries.count + 4 + values.count)
        // Values begin on even places.
        values += value + [UInt8](repeating: 0, count: value.count % 2)
      }
    }
    return list + EXIFWriter.big(0) + values
  }
}
