import Testing

@testable import ImageCodec

/// The decoder of plain images beside the one of every format.
struct PlainImageTests {
  private let plain = try! Decoding.shared()
  /// Decodes every image with `imageworker-codec`.
  private let other = try! Decoding(executable: try! DecoderExecutable.find())

  static let transforms: [Transform] = [
    Transform(), .with { $0.width = 40 }, .with { ($0.width, $0.height, $0.fit) = (30, 30, .cover) },
    .with { ($0.width, $0.height, $0.fit, $0.focus) = (30, 30, .cover, .point(x: 1, y: 0)) },
    .with { ($0.width, $0.height, $0.fit) = (31, 17, .fill) },
    .with { ($0.crop, $0.quality) = (.init(x: 5, y: 9, width: 60, height: 33), 95) },
    .with { ($0.crop, $0.width) = (.init(x: 8, y: 16, width: 64, height: 32), 10) },
    .with { ($0.crop, $0.width, $0.height, $0.fit) = (.init(x: 1, y: 1, width: 70, height: 50), 20, 20, .cover) },
    .with { ($0.width, $0.enlarge) = (300, true) }, .with { $0.isOriented = false },
  ]

  private static let (waves, hills) = (Pictures.waves(131, 97).png(), Pictures.hills(64, 48).png())

  @Test(arguments: transforms, 1...8)
  func `the result is the same, byte for byte`(transform: Transform, orientation: Int) async throws {
    let profile = Build.segment(0xE2, Build.text("ICC_PROFILE\0") + [1, 1] + Build.wideProfile())
    for (source, quality, profile) in [
      (Self.waves, 80, []), (Self.waves, 95, []), (Self.hills, 80, []), (Self.waves, 80, profile),
    ] {
      var file = try await other.encoded(source, as: .jpeg, quality: quality)
      file.insert(contentsOf: Build.jpegEXIF(orientation) + profile, at: 2)
      #expect(try other.task(file, .encoded("a"), transform).libraries == .plain)
      do {
        let (decoded, encoded) = try await plain.encoded(file, transform)
        let (expected, bytes) = try await other.encoded(file, transform)
        #expect(decoded == expected && encoded == bytes)
        #expect(try await plain.pixels(file, transform) == (try await other.pixels(file, transform)))
        guard orientation == 6 else { continue }
        let png = transform.with { $0.format = .png }
        #expect(try await plain.encoded(file, png) == (try await other.encoded(file, png)))
      } catch DecodeError.cropOutside(let text) {
        let task = try other.task(file, .encoded(other.newPath()), transform)
        #expect(await other.run(task) == .failure(.cropOutside(text)))
      }
    }
  }

  static let pngs: [(String, [UInt8])] = {
    func picture(_ samples: Int, depth: Int = 8) -> Pictures {
      Pictures(width: 61, height: 47, samples: samples, depth: depth) { x, y in
        (0..<samples).map { (x * (3 + $0) + y * y / 5) & (1 << depth - 1) }
      }
    }
    let palette = (0..<16).flatMap { (index: UInt8) -> [UInt8] in [index * 16, 255 - index * 9, index * index] }
    let transparency = Pictures.chunk("tRNS", [0, 60, 200])
    let indices = picture(1, depth: 4).png(palette: palette)
    return [
      ("grey", picture(1).png()), ("grey with alpha", picture(2).png()), ("RGB", picture(3).png()),
      ("RGB with alpha", picture(4).png()), ("a bit", picture(1, depth: 1).png()), ("palette", indices),
      ("transparent palette", indices.inserting(transparency, before: "IDAT")),
      ("transparent colour", picture(3).png(extraChunks: Pictures.chunk("tRNS", [0, 9, 0, 12, 0, 15]))),
      ("transparent grey", picture(1, depth: 2).png(extraChunks: Pictures.chunk("tRNS", [0, 2]))),
      ("16 bits", picture(3, depth: 16).png()), ("sRGB", picture(3).png(extraChunks: Pictures.chunk("sRGB", [0]))),
      ("gamma", picture(3).png(extraChunks: Pictures.chunk("gAMA", [0, 1, 0x86, 0xA0]))),
      ("wide", picture(3).png(extraChunks: profile(Build.wideProfile()))),
      ("wide with alpha", picture(4).png(extraChunks: profile(Build.wideProfile()))),
      ("wide grey", picture(1).png(extraChunks: profile(Build.wideProfile()))),
      ("wide grey with alpha", picture(2).png(extraChunks: profile(Build.wideProfile()))),
      ("table", picture(3).png(extraChunks: profile(Build.negativeProfile("RGB ", channels: 3, tags: ["A2B0"])))),
    ]
  }()

  private static func profile(_ bytes: [UInt8]) -> [UInt8] {
    Pictures.chunk("iCCP", Build.text("p\0") + [0] + Pictures.deflated(bytes))
  }

  @Test(arguments: pngs, [1, 6])
  func `a PNG gives the same result, byte for byte`(picture: (String, [UInt8]), orientation: Int) async throws {
    let file = picture.1.inserting(Pictures.chunk("eXIf", Build.exif(orientation)), before: "IDAT")
    try await compare(file)
  }

  @Test func `placeholders are the same`() async throws {
    let jpeg = try await other.encoded(Self.waves, as: .jpeg)
    let small = try await other.encoded(Self.hills, as: .webp)
    for file in [jpeg, small] + Self.pngs.map(\.1) {
      for transform in Self.transforms + [.with { $0.format = .jpeg }] {
        for output in [nil, DecodeTask.Output.placeholder] {
          func result(_ decoding: Decoding) async throws -> Result<Decoded, DecodeError> {
            let output = output ?? .encoded(decoding.newPath())
            let task = try decoding.task(file, output, transform, placeholder: output != .placeholder)
            #expect(task.libraries == .plain)
            return await decoding.run(task)
          }
          #expect(try await result(plain) == (try await result(other)))
        }
      }
    }
  }

  /// Compares the results of all transforms, each in one format: which one depends on the file.
  private func compare(_ file: [UInt8]) async throws {
    for (number, transform) in Self.transforms.enumerated() {
      do {
        let format = [nil, ImageFormat.jpeg, .png, .webp][(number + file.count) % 4]
        let encoded = transform.with { ($0.format, $0.background) = (format, 0x336699) }
        #expect(try other.task(file, .encoded("a"), encoded).libraries == .plain)
        #expect(try await plain.encoded(file, encoded) == (try await other.encoded(file, encoded)), "\(encoded)")
        #expect(try await plain.pixels(file, transform) == (try await other.pixels(file, transform)))
      } catch DecodeError.cropOutside {}
    }
  }

  @Test(arguments: ["lossy", "alpha", "lossless", "wide"], [1, 6])
  func `a WebP gives the same result, byte for byte`(kind: String, orientation: Int) async throws {
    let png =
      switch kind {
      case "alpha":
        Pictures(width: 133, height: 97, samples: 4) { x, y in [x, y * 2, x ^ y, x * y / 9].map { $0 & 255 } }
          .png()
      // Artwork becomes lossless.
      case "lossless":
        Pictures(width: 133, height: 97, samples: 1, depth: 4) { x, y in [x / 9 * y / 7 & 15] }.png(
          palette: (0..<48).map { UInt8($0 * 5) })
      default: Pictures.waves(133, 97).png()
      }
    let stored = try await other.encoded(png, .with { $0.format = .webp }).1
    let image = stored[12...].starts(with: Build.text("VP8X")) ? Array(stored[30...]) : Array(stored[12...])
    let flags: UInt8 = 8 | (kind == "wide" ? 0x20 : 0) | (kind == "alpha" ? 0x10 : 0)
    let head = [flags, 0, 0, 0] + Build.little24(132) + Build.little24(96)
    let profile = kind == "wide" ? Build.webpChunk("ICCP", Build.wideProfile()) : []
    let file = Build.riff(
      Build.webpChunk("VP8X", head) + profile + image + Build.webpChunk("EXIF", Build.exif(orientation)))
    try await compare(file)
  }

  @Test func `alpha that the header of a WebP does not announce is ignored`() async throws {
    let picture = Pictures(width: 12, height: 8, samples: 4) { x, _ in [9, 99, 199, x * 20] }
    let file = try await other.encoded(picture.png(), .with { $0.format = .webp }).1
    try #require(file[12...].starts(with: Build.text("VP8X")) && file[20] & 0x10 != 0)
    #expect(try await plain.pixels(file).channels == 4)
    let hidden = Array(file[..<20]) + [file[20] & ~0x10] + file[21...]
    #expect(try await plain.pixels(hidden).channels == 3)
    #expect(try await other.pixels(hidden) == (try await plain.pixels(hidden)))
  }

  @Test(arguments: [ImageFormat.jpeg, .webp])
  func `damage is treated in the same way`(format: ImageFormat) async throws {
    var generator = SeededGenerator(state: 20_261_128)
    let file = try await other.encoded(Pictures.waves(80, 60).png(), as: format, quality: 60)
    for _ in 0..<150 {
      let broken = generator.broken(file)
      guard let header = try? Decoding.header(broken), header.format == format else { continue }
      for output in [DecodeTask.Output.check, .encoded(plain.newPath())] {
        let task = DecodeTask(
          source: .bytes(broken), header: header, transform: .with { $0.width = 16 }, output: output,
          maxPixels: 4_000_000)
        var same = task
        if case .encoded = output { same.output = .encoded(other.newPath()) }
        switch (await plain.run(task), await other.run(same)) {
        case (.success(let left), .success(let right)): #expect(left == right)
        // libvips reports the first warning about such a file, libjpeg what makes it fail.
        case (.failure(.unsupportedFormat), .failure(.corrupt)), (.failure(.corrupt), .failure(.corrupt)): break
        case (let left, let right): #expect(left == right)
        }
      }
    }
  }

  @Test func `images that need more are passed on`() async throws {
    let jpeg = try await other.encoded(Pictures.waves(20, 20).png(), as: .jpeg)
    let profile = Build.segment(0xE2, Build.text("ICC_PROFILE\0\u{1}\u{1}") + [UInt8](repeating: 0, count: 200))
    var file = jpeg
    file.insert(contentsOf: profile, at: 2)
    #expect(try await plain.encoded(file).1 == (try await other.encoded(file).1))
    for change in [
      { (transform: inout Transform) in transform.blur = 1 }, { $0.cornerRadius = 3 }, { $0.isGrayscale = true },
      { ($0.width, $0.height, $0.fit, $0.focus) = (8, 4, .cover, .attention) }, { $0.format = .avif },
      { ($0.width, $0.height, $0.fit) = (9, 9, .contain) },
    ] {
      #expect(try plain.task(file, .encoded("a"), .with(change)).libraries == .common)
    }
    #expect(try plain.task(file, .check, placeholder: true).libraries == .common)
    #expect(try plain.task(file, .facts(.exif)).libraries == .common)
  }
}

extension [UInt8] {
  /// With a chunk before the first of a name.
  fileprivate func inserting(_ chunk: [UInt8], before name: String) -> [UInt8] {
    let place = indices.dropLast(3).first { Array(self[$0..<($0 + 4)]) == Build.text(name) }! - 4
    return Array(self[..<place]) + chunk + self[place...]
  }
}

extension Transform {
  fileprivate func with(_ change: (inout Transform) -> Void) -> Transform {
    var transform = self
    change(&transform)
    return transform
  }
}
