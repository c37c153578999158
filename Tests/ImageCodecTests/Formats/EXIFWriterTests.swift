import Testing

@testable import ImageCodec

/// The EXIF data that results keep.
struct EXIFWriterTests {
  private static let fields: [EXIFField: EXIFValue] = [
    .orientation: .number(6), .make: .text("Maker"), .model: .text("Größe 5"), .artist: .text("A. Person"),
    .copyright: .text("© A"), .exposureTime: .number(1 / 250), .fNumber: .number(2.8), .iso: .number(400),
    .dateTimeOriginal: .text("2024-05-01T12:30:09+02:00"), .focalLength: .number(50),
    .focalLengthIn35mm: .number(75), .lensModel: .text("50"), .latitude: .number(-33.8598333),
    .longitude: .number(151.2111111), .altitude: .number(-12.5),
  ]

  /// A value as it is in the file: type, and bytes.
  private typealias Value = (type: Int, bytes: [UInt8])

  /// The values by their directories (0, or the tag of the pointer) and tags. Nil if the data is not a file as TIFF 6.0
  /// permits it.
  private static func naive(_ data: [UInt8]) -> [Int: [Int: Value]]? {
    func number(_ place: Int, _ count: Int) -> Int { data[place..<(place + count)].reduce(0) { $0 << 8 | Int($1) } }
    guard data.count >= 8, Array(data[..<4]) == [0x4D, 0x4D, 0, 42] else { return nil }
    var result: [Int: [Int: Value]] = [:]
    var directories = [(0, number(4, 4))]
    var used = 8
    while let (name, start) = directories.popLast() {
      guard start % 2 == 0, start + 2 <= data.count else { return nil }
      let count = number(start, 2)
      let end = start + 2 + 12 * count + 4
      guard count > 0, end <= data.count, number(end - 4, 4) == 0 else { return nil }
      used += end - start
      var lastTag = -1
      for place in stride(from: start + 2, to: end - 4, by: 12) {
        let (tag, type, count) = (number(place, 2), number(place + 2, 2), number(place + 4, 4))
        guard tag > lastTag, let length = [1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 7: 1][type], count > 0 else { return nil }
        lastTag = tag
        let bytes = count * length
        let value = bytes <= 4 ? place + 8 : number(place + 8, 4)
        guard value % 2 == 0, value + bytes <= data.count else { return nil }
        if bytes > 4 { used += bytes + bytes % 2 }
        if [34_665, 34_853].contains(tag) {
          directories.append((tag, number(value, 4)))
        } else {
          result[name, default: [:]][tag] = (type, Array(data[value..<(value + bytes)]))
        }
      }
    }
    return used == data.count ? result : nil
  }

  @Test func `every byte is where the specification has it`() throws {
    let found = try #require(Self.naive(EXIFWriter.data(Self.fields)))
    let expected: [Int: [Int: Value]] = [
      0: [
        271: (2, Build.text("Maker\0")), 272: (2, Build.text("Größe 5\0")), 274: (3, [0, 6]),
        315: (2, Build.text("A. Person\0")), 33_432: (2, Build.text("© A\0")),
      ],
      34_665: [
        33_434: (5, Build.big32(1) + Build.big32(250)), 33_437: (5, Build.big32(14) + Build.big32(5)),
        34_855: (3, Build.big16(400)), 36_864: (7, Build.text("0232")),
        36_867: (2, Build.text("2024:05:01 12:30:09\0")), 36_881: (2, Build.text("+02:00\0")),
        37_386: (5, Build.big32(50) + Build.big32(1)), 41_989: (3, Build.big16(75)), 42_036: (2, Build.text("50\0")),
      ],
      34_853: [
        0: (1, [2, 3, 0, 0]), 1: (2, Build.text("S\0")),
        2: (5, [33, 1, 51, 1, 353_999, 10_000].flatMap(Build.big32)), 3: (2, Build.text("E\0")),
        4: (5, [151, 1, 12, 1, 400_000, 10_000].flatMap(Build.big32)), 5: (1, [1]),
        6: (5, Build.big32(25) + Build.big32(2)),
      ],
    ]
    #expect(Set(found.keys) == Set(expected.keys))
    for (directory, values) in expected {
      #expect(Set(found[directory]?.keys ?? [:].keys) == Set(values.keys))
      for (tag, value) in values {
        #expect(found[directory]?[tag]?.type == value.type && found[directory]?[tag]?.bytes == value.bytes, "\(tag)")
      }
    }
  }

  @Test func `the reader reads the same fields, of any choice`() throws {
    let all = Set(EXIFField.allCases)
    #expect(EXIFReader.read(EXIFWriter.data(Self.fields), all) == Self.fields)
    #expect(EXIFWriter.data([:]).isEmpty)
    var generator = SeededGenerator(state: 40)
    for _ in 0..<500 {
      // A position is read as a whole, the altitude with it.
      let hasPosition = Bool.random(using: &generator)
      let chosen = Self.fields.filter { field, _ in
        field.isPosition ? hasPosition : Bool.random(using: &generator)
      }
      let data = EXIFWriter.data(chosen)
      #expect(EXIFReader.read(data, all) == chosen)
      #expect(data.isEmpty || Self.naive(data) != nil)
      #expect(EXIFReader.hasPosition(data, at: 0) == (data.isEmpty ? nil : hasPosition))
    }
  }

  @Test func `numbers are read as they were`() throws {
    var generator = SeededGenerator(state: 41)
    func ratio(_ limit: Int) -> Double {
      Double(Int.random(in: 1...limit, using: &generator)) / Double(Int.random(in: 1...limit, using: &generator))
    }
    for _ in 0..<2000 {
      let fields: [EXIFField: EXIFValue] = [
        .exposureTime: .number(ratio(60_000)), .fNumber: .number(ratio(1000)), .focalLength: .number(ratio(100_000)),
        .iso: .number(Double(Int.random(in: 1...200_000, using: &generator))),
        .latitude: .number(Double(Int.random(in: -900_000_000...900_000_000, using: &generator)) / 1e7),
        .longitude: .number(Double(Int.random(in: -1_800_000_000...1_800_000_000, using: &generator)) / 1e7),
        .altitude: .number(ratio(9000)),
      ]
      #expect(EXIFReader.read(EXIFWriter.data(fields), Set(EXIFField.allCases)) == fields)
    }
  }

  @Test(arguments: [
    (0.004, 1, 250), (0.0, 0, 1), (2.8, 14, 5), (30.0, 30, 1), (1.0 / 3, 1, 3), (4_294_967_295.0, 4_294_967_295, 1),
    (1 / 4_294_967_295.0, 1, 4_294_967_295), (1e-12, 0, 1),
  ]) func `a fraction is the shortest one`(value: Double, top: Int, bottom: Int) {
    let fraction = EXIFWriter.fraction(value)
    #expect(fraction?.top == top && fraction?.bottom == bottom)
  }

  @Test func `numbers that do not fit are left out`() {
    for number in [-1, 4_294_967_296, 1e300, .infinity, -.infinity, .nan] {
      #expect(EXIFWriter.fraction(number) == nil)
      let fields: [EXIFField] = [
        .orientation, .exposureTime, .fNumber, .iso, .focalLength, .focalLengthIn35mm,
      ]
      for field in fields { #expect(EXIFWriter.data([field: .number(number)]).isEmpty) }
    }
    for number in [1e300, .infinity, -.infinity, .nan] {
      for field in EXIFField.position { #expect(EXIFWriter.data([field: .number(number)]).isEmpty) }
    }
    #expect(EXIFWriter.data([.iso: .number(2.5), .exposureTime: .number(0), .dateTimeOriginal: .text("")]).isEmpty)
    #expect(EXIFWriter.data([.make: .number(1), .iso: .text("fast")]).isEmpty)
  }

  /// Loops, huge counts, offsets outside, and any other bytes.
  @Test func `damaged data gives a small block, and no position that is not named`() {
    var generator = SeededGenerator(state: 42)
    let long = String(repeating: "x", count: EXIFValue.maxLength)
    let largest = Self.fields.mapValues { if case .text = $0 { EXIFValue.text(long) } else { $0 } }
    #expect(EXIFWriter.data(largest).count < 3072)
    let whole = EXIFWriter.data(Self.fields)
    for round in 0..<600 {
      var data = whole
      for _ in 0...(round % 4) {
        let place = Int.random(in: 0..<data.count, using: &generator)
        if round % 3 == 0 {
          let byte = [UInt8(0), 8, 0xFF].randomElement(using: &generator)!
          for index in place..<min(place + 4, data.count) { data[index] = byte }
        } else {
          data[place] = UInt8.random(in: 0...255, using: &generator)
        }
      }
      let kept = EXIFReader.read(data, Set(EXIFField.others)).filter { $0.key != .orientation }
      let written = EXIFWriter.data(kept)
      #expect(written.count < 3072)
      guard !written.isEmpty else { continue }
      let found = Self.naive(written)
      #expect(found != nil && found?[34_853] == nil && found?[0]?[274] == nil)
      #expect(EXIFReader.hasPosition(written, at: 0) == false)
    }
  }

  // MARK: - Results

  private static func kept(_ fields: Set<EXIFField>, _ format: ImageFormat?, quality: Int? = nil) -> Transform {
    var transform = Transform()
    (transform.width, transform.format, transform.metadata, transform.quality) = (16, format, fields, quality)
    return transform
  }

  @Test(arguments: [ImageFormat.jpeg, .png, .webp, .avif], [ImageFormat.jpeg, .png, .webp, .avif])
  func `a result has the named fields and the same pixels`(source: ImageFormat, format: ImageFormat) async throws {
    let plain = try Decoding.shared()
    let other = try Decoding(executable: try DecoderExecutable.find())
    let exif = EXIFWriter.data(Self.fields.filter { $0.key != .orientation })
    var all = Set(EXIFField.allCases)
    all.remove(.orientation)
    let picture = Pictures.waves(40, 30)
    let first = picture.png(extraChunks: Pictures.chunk("eXIf", exif))
    let file = try await other.encoded(first, Self.kept(all, source)).1
    for fields in [[], [.copyright], [.dateTimeOriginal, .make], Set(EXIFField.position), all] as [Set<EXIFField>] {
      let transform = Self.kept(fields, format)
      let (decoded, bytes) = try await other.encoded(file, transform)
      #expect(decoded.bytes == bytes.count)
      if [source, format].allSatisfy({ $0 != .avif }) {
        #expect(try other.task(file, .encoded("a"), transform).libraries == .plain)
        #expect(try await plain.encoded(file, transform).1 == bytes)
      }
      let facts = try await other.run(try other.task(bytes, .facts([.exif, .gps, .container]))).get().facts
      let expected = Self.fields.filter { fields.contains($0.key) }
      #expect(facts.exif?.merging(facts.gps ?? [:]) { value, _ in value } == expected)
      #expect(facts.container?.hasGPS == fields.contains(.latitude))
      let none = try await other.encoded(file, Self.kept([], format)).1
      #expect(try await other.pixels(bytes) == (try await other.pixels(none)))
      #expect(fields.isEmpty == (bytes == none))
    }
  }

  @Test func `metadata belongs to the canonical form`() throws {
    let transform = Self.kept([.copyright, .artist, .longitude], .jpeg)
    #expect(transform.canonical == "v3,w=16,format=jpeg,metadata=artist:copyright:longitude")
    #expect(Transform(canonical: transform.canonical) == transform)
    for text in ["artist:", "", "copyright:artist", "orientation", "artist:artist", "gps", "artist:secret"] {
      #expect(Transform(canonical: "v3,metadata=\(text)") == nil)
    }
  }
}
