import Testing

@testable import ImageCodec

/// The decoder of plain JPEGs beside the one of every format.
struct PlainJPEGTests {
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

  @Test(arguments: transforms, 1...8)
  func `the result is the same, byte for byte`(transform: Transform, orientation: Int) async throws {
    let picture = Pictures.waves(131, 97)
    for (source, quality) in [(picture.png(), 80), (picture.png(), 95), (Pictures.hills(64, 48).png(), 80)] {
      var file = try await other.encoded(source, as: .jpeg, quality: quality)
      file.insert(contentsOf: Build.jpegEXIF(orientation), at: 2)
      #expect(try other.task(file, .encoded("a"), transform).libraries == .jpeg)
      do {
        let (decoded, encoded) = try await plain.encoded(file, transform)
        let (expected, bytes) = try await other.encoded(file, transform)
        #expect(decoded == expected && encoded == bytes)
        #expect(try await plain.pixels(file, transform) == (try await other.pixels(file, transform)))
      } catch DecodeError.cropOutside(let text) {
        let task = try other.task(file, .encoded(other.newPath()), transform)
        #expect(await other.run(task) == .failure(.cropOutside(text)))
      }
    }
  }

  @Test func `damage is treated in the same way`() async throws {
    var generator = SeededGenerator(state: 20_261_128)
    let file = try await other.encoded(Pictures.waves(80, 60).png(), as: .jpeg, quality: 60)
    for _ in 0..<300 {
      let broken = generator.broken(file)
      guard let header = try? Decoding.header(broken), header.format == .jpeg else { continue }
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
    let cmyk = try await other.encoded(Pictures.waves(20, 20).png(), as: .jpeg)
    let profile = Build.segment(0xE2, Build.text("ICC_PROFILE\0\u{1}\u{1}") + [UInt8](repeating: 0, count: 200))
    var file = cmyk
    file.insert(contentsOf: profile, at: 2)
    #expect(try await plain.encoded(file).1 == (try await other.encoded(file).1))
    for change in [
      { (transform: inout Transform) in transform.blur = 1 }, { $0.cornerRadius = 3 }, { $0.isGrayscale = true },
      { ($0.width, $0.height, $0.fit, $0.focus) = (8, 4, .cover, .attention) }, { $0.format = .png },
      { ($0.width, $0.height, $0.fit) = (9, 9, .contain) },
    ] {
      #expect(try plain.task(file, .encoded("a"), .with(change)).libraries == .common)
    }
    #expect(try plain.task(file, .check, placeholder: true).libraries == .common)
    #expect(try plain.task(file, .facts(.exif)).libraries == .common)
  }
}
