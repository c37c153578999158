import Testing

@testable import ImageCodec

/// The EXIF fields that hosts get.
struct EXIFTests {
  /// A value of a tag: type, count and bytes.
  private typealias Value = (type: Int, count: Int, bytes: [UInt8])

  private static func text(_ text: String) -> Value { (2, text.utf8.count + 1, Build.text(text) + [0]) }
  private static func short(_ number: Int) -> Value { (3, 1, Build.big16(number)) }
  private static func ratios(_ numbers: (Int, Int)...) -> Value {
    (5, numbers.count, numbers.flatMap { Build.big32($0.0) + Build.big32($0.1) })
  }

  /// A directory that begins at `start`, without directories after it.
  private static func directory(_ entries: [(Int, Value)], at start: Int) -> [UInt8] {
    var table = Build.big16(entries.count)
    var values: [UInt8] = []
    let end = start + 2 + 12 * entries.count + 4
    for (tag, value) in entries {
      table += Build.big16(tag) + Build.big16(value.type) + Build.big32(value.count)
      if value.bytes.count <= 4 {
        table += value.bytes + [UInt8](repeating: 0, count: 4 - value.bytes.count)
      } else {
        table += Build.big32(end + values.count)
        values += value.bytes
      }
    }
    return table + Build.big32(0) + values
  }

  /// EXIF data with directories for the image, the camera and the position.
  private static func exif(
    _ image: [(Int, Value)] = [], camera: [(Int, Value)] = [], position: [(Int, Value)] = []
  ) -> [UInt8] {
    func main(_ first: Int, _ second: Int) -> [UInt8] {
      directory(
        image + [(34_665, (4, 1, Build.big32(first))), (34_853, (4, 1, Build.big32(second)))], at: 8)
    }
    let first = 8 + main(0, 0).count
    let second = first + directory(camera, at: first).count
    return Build.text("MM") + Build.big16(42) + Build.big32(8) + main(first, second)
      + directory(camera, at: first) + directory(position, at: second)
  }

  private static let camera = photograph()
  /// A TIFF of one pixel, whose sample is its byte 8.
  private static let tiff = photograph([
    (256, short(1)), (257, short(1)), (258, short(8)), (259, short(1)), (262, short(1)),
    (273, (4, 1, Build.big32(8))), (277, short(1)), (278, short(1)), (279, (4, 1, Build.big32(1))),
  ])

  private static func photograph(_ image: [(Int, Value)] = []) -> [UInt8] {
    exif(
      (image + [(271, text("Maker Ltd. ")), (272, text("Größe 5")), (274, short(6)), (33_432, text("© A. Person"))])
        .sorted { $0.0 < $1.0 },
      camera: cameraFields, position: positionFields)
  }

  private static let cameraFields: [(Int, Value)] = [
    (33_434, ratios((1, 250))), (33_437, ratios((28, 10))), (34_855, short(400)),
    (36_867, text("2024:05:01 12:30:09")), (36_881, text("+02:00")), (37_386, ratios((50, 1))),
    (41_989, short(75)), (42_036, text("Lens 50")),
  ]
  private static let positionFields: [(Int, Value)] = [
    (1, text("S")), (2, ratios((33, 1), (51, 1), (3540, 100))),
    (3, text("E")), (4, ratios((151, 1), (12, 1), (40, 1))),
    (5, (1, 1, [1])), (6, ratios((25, 2))),
  ]

  private static let fields: [EXIFField: EXIFValue] = [
    .make: .text("Maker Ltd."), .model: .text("Größe 5"), .orientation: .number(6), .copyright: .text("© A. Person"),
    .exposureTime: .number(0.004), .fNumber: .number(2.8), .iso: .number(400), .focalLength: .number(50),
    .focalLengthIn35mm: .number(75), .lensModel: .text("Lens 50"),
    .dateTimeOriginal: .text("2024-05-01T12:30:09+02:00"),
  ]
  private static let position: [EXIFField: EXIFValue] = [
    .latitude: .number(-33.8598333), .longitude: .number(151.2111111), .altitude: .number(-12.5),
  ]

  @Test func `fields are read, and the position only if it is asked for`() {
    #expect(EXIFReader.read(Self.camera, Set(EXIFField.others)) == Self.fields)
    #expect(EXIFReader.read(Build.text("Exif\0\0") + Self.camera, Set(EXIFField.position)) == Self.position)
    #expect(EXIFReader.read(Build.text("none"), Set(EXIFField.allCases)).isEmpty)
    #expect(EXIFReader.read([UInt8](), Set(EXIFField.allCases)).isEmpty)
  }

  @Test func `a damaged file gives the fields that can be read, without a trap`() {
    for count in Self.camera.indices {
      for (field, value) in EXIFReader.read(Array(Self.camera[..<count]), Set(EXIFField.others)) {
        #expect(Self.fields[field] == value || field == .dateTimeOriginal)
      }
      var changed = Self.camera
      for byte in [UInt8(0), 0x7F, 0xFF] {
        changed[count] = byte
        for value in EXIFReader.read(changed, Set(EXIFField.allCases)).values {
          guard case .text(let text) = value else { continue }
          #expect(text.utf8.count <= EXIFValue.maxLength)
        }
      }
    }
  }

  @Test(arguments: [
    "", "   ", String(repeating: "a", count: 201),
    String(repeating: " ", count: 250) + String(repeating: "a", count: 250), "a\u{1B}[31m", "a\nb", "a\u{202E}b",
    "a\u{2028}b",
  ]) func `other texts are left out`(text: String) {
    #expect(EXIFReader.read(Self.exif([(271, Self.text(text))]), [.make]).isEmpty)
  }

  @Test func `a text that is not UTF-8 and a number without a value are left out`() {
    let data = Self.exif(
      [(271, (2, 3, [0x41, 0xE9, 0])), (272, Self.short(5)), (274, Self.short(9))],
      camera: [(33_434, Self.ratios((1, 0))), (33_437, Self.ratios((0, 1))), (34_855, Self.text("fast"))],
      position: Self.north((91, 1)) + [(5, Self.short(0)), (6, Self.ratios((9, 1)))])
    #expect(EXIFReader.read(data, Set(EXIFField.allCases)).isEmpty)
  }

  private static func north(_ latitude: (Int, Int)) -> [(Int, Value)] {
    [
      (1, text("N")), (2, ratios(latitude, (0, 1), (0, 1))), (3, text("E")), (4, ratios((1, 1), (0, 1), (0, 1))),
    ]
  }

  @Test func `a position without the side of the equator is left out`() {
    let position = Self.north((45, 1))
    let whole = EXIFReader.read(Self.exif(position: position), Set(EXIFField.position))
    #expect(whole == [.latitude: .number(45), .longitude: .number(1)])
    for left in [nil, "X", "north"] as [String?] {
      let changed = left.map { [(1, Self.text($0))] } ?? []
      #expect(EXIFReader.read(Self.exif(position: changed + position.dropFirst()), Set(EXIFField.position)).isEmpty)
    }
  }

  @Test func `a directory that refers to itself is read once`() {
    let looped = Self.exif([(271, Self.text("Maker"))])
    // Entry 1 is that of the camera's directory, in a table that begins at byte 10.
    var changed = looped
    changed.replaceSubrange(10 + 12 + 8..<10 + 12 + 12, with: Build.big32(8))
    #expect(EXIFReader.read(changed, Set(EXIFField.allCases)) == [.make: .text("Maker")])
  }

  @Test(arguments: [
    ("2024:05:01 12:30:09", "", "2024-05-01T12:30:09"), ("2024:05:01 12:30:09", "+25:00", "2024-05-01T12:30:09"),
    ("2024:05:01 12:30:09", "-03:30", "2024-05-01T12:30:09-03:30"), ("2024:13:01 12:30:09", "", nil),
    ("0000:00:00 00:00:00", "", nil), ("2024-05-01 12:30:09", "", nil), ("    :  :     :  :  ", "", nil),
    ("2024:05:01 12:30", "", nil), ("2023:02:29 12:30:09", "", nil), ("2024:02:29 12:30:09", "", "2024-02-29T12:30:09"),
  ]) func `a date is one of the calendar`(text: String, offset: String, expected: String?) {
    #expect(EXIFReader.date(Array(text.utf8)[...], offset: Array(offset.utf8)[...]) == expected)
  }

  @Test func `a decoder returns the fields of each container`() async throws {
    let decoding = try Decoding.shared()
    let files = [
      Pictures.waves(20, 20).png(extraChunks: Pictures.chunk("eXIf", Self.camera)),
      [0xFF, 0xD8] + Build.segment(0xE1, Build.text("Exif\0\0") + Self.camera)
        + (try await decoding.encoded(Pictures.waves(20, 20).png(), as: .jpeg)).dropFirst(2),
      Self.tiff,
    ]
    for file in files {
      let facts = try await decoding.run(try decoding.task(file, .facts([.exif, .gps]))).get().facts
      #expect(facts.exif == Self.fields && facts.gps == Self.position && facts.perceptualHash == nil)
    }
    let plain = try await decoding.run(try decoding.task(Pictures.waves(9, 9).png(), .facts(.exif))).get().facts
    #expect(plain.exif == [:] && plain.gps == nil)
  }

  @Test func `the fields of an AVIF and a GIF are read without their pixels`() async throws {
    let decoding = try Decoding.shared()
    let colors = { (x: Int, y: Int) in [x, y, 0, 255] }
    var avif = try AVIFBuilder(primaries: 9, transfer: 16, exif: Self.camera, frames: [(0, colors)]).file()
    let data = try #require(avif.firstRange(of: Build.text("mdat")))
    let exif = try #require(avif.firstRange(of: Self.camera))
    for index in avif.indices where index >= data.upperBound && !exif.contains(index) { avif[index] = 0xFF }
    let decoded = try await decoding.run(try decoding.task(avif, .facts([.exif, .gps]))).get()
    #expect(decoded.facts.exif == Self.fields && decoded.facts.gps == Self.position && decoded.notes == .pq)
    guard case .failure(.corrupt) = await decoding.run(try decoding.task(avif, .check)) else {
      return #expect(Bool(false))
    }
    let gif = Build.gif(20, 20, frames: 2, frameSize: (20, 20))
    let cut = try await decoding.run(try decoding.task(Array(gif.dropLast(4)), .facts(.exif))).get()
    #expect(cut.facts.exif == [:] && cut.notes == [])
  }

  @Test(arguments: [4, 13]) func `a DNG is not its thumbnail`(typeOfOffset: Int) async throws {
    // A directory of 6 entries follows the header, and the directory of the raw picture follows it.
    let offset = 8 + 2 + 6 * 12 + 4
    let thumbnail = [
      (254, 4, 1), (256, 4, 128), (257, 4, 96), (274, 3, 6), (330, typeOfOffset, offset), (50_706, 4, 1),
    ]
    let raw = Build.tiff([(254, 4, 0), (256, 4, 4032), (257, 4, 3024)])
    let file = Build.tiff(thumbnail) + raw.dropFirst(8)
    let header = ImageHeader(.tiff, width: 4032, height: 3024, orientation: 6)
    #expect(try ImageHeader.read(file, format: .tiff) == header)
    let decoding = try Decoding.shared()
    guard case .failure(.unsupportedFormat(let text, let figures)) = await decoding.run(try decoding.task(file, .check))
    else { return #expect(Bool(false)) }
    #expect(text == "the file is a DNG (raw photo), and the decoder does not develop raw photos")
    #expect(figures.detected == .dng)
    let facts = try await decoding.run(try decoding.task(file, .facts(.exif))).get().facts
    #expect(facts.exif == [.orientation: .number(6)])
  }

  @Test func `a reply without a fact that was asked for is not accepted`() throws {
    let header = ImageHeader(.png, width: 1, height: 1)
    let output = DecodeTask.Output.facts([.exif, .perceptualHash])
    let files = try TaskFiles(DecodeTask(source: .bytes([0]), header: header, output: output, maxPixels: 1))
    var decoded = Decoded()
    decoded.facts.exif = [:]
    #expect(!files.accept(decoded, for: output))
    decoded.facts.perceptualHash = 1
    #expect(files.accept(decoded, for: output))
  }

  @Test func `the largest fields fit into a message, and a message is not believed`() throws {
    var decoded = Decoded()
    let longest = String(repeating: "é", count: EXIFValue.maxLength / 2)
    decoded.facts.exif = Dictionary(
      uniqueKeysWithValues: EXIFField.others.map { ($0, $0.isText ? .text(longest) : .number(1.0 / 3)) })
    decoded.facts.gps = [.latitude: .number(-1e-7)]
    var bytes = CodecReply.done(decoded).message.bytes
    #expect(bytes.count < CodecMessage.maxLength / 2)
    var message = try #require(CodecMessage(takenFrom: &bytes))
    #expect(CodecReply(message) == .done(decoded))
    for wrong in ["a\u{7}", String(repeating: "a", count: 201), ""] {
      message["exif.make"] = wrong
      #expect(CodecReply(message) == nil)
    }
    message["exif.make"] = "a"
    for wrong in ["inf", "nan", "x"] {
      message["exif.iso"] = wrong
      #expect(CodecReply(message) == nil)
    }
  }
}
