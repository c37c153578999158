import Foundation
import ImageCodec
import Testing

/// JPEG XL files that libjxl's cjxl made of gradients in each channel.
struct JXLTests {
  let decoding: Decoding

  init() throws { decoding = try .shared() }

  private static func file(_ text: String) -> [UInt8] { [UInt8](Data(base64Encoded: text)!) }

  /// 24 x 20; alpha equals red.
  static let lossless = file(
    "/wqYILCguBAICBAAWAFLGJOOhYMpEcWG12NDGGOwUowxNqCoMMZg2QsIBWAz7RuB6r6vqKIKTAQAAHAF6KOa/2d91bXI+mRbeo/2EtXtO1EpMZGf"
      + "lMHUvarZWMrUvarpWMpxAA==")
  static let lossy = file(
    "/wqYILChuBAASIAoAIgDXeUSAAAVKqOMG7yc6/nyQ4fFtI3rDG21bWFJ4hiZt3IBXr1UYMiBDAoPM4MUFMhxPGeM8WLGYJXYAMcYGYODMTJG0oiM"
      + "jGa0HH1iuV0BAE51AMA4M8YYT45j7D39uPfe/7mTJEk++5Mkw6T8MwzDaKf+f37Wr4xgjrT17W3bh/X/P9v/+PPdxP8/zn8/M+opE+d4FQCxiRq6"
      + "uImYBmkgCJsBpW4AEs4U/AUAAAQeEFAoErSvQgrkWZYkxUjGyMjYGMkY2fhxOUAXqQzvhoAH4+76IZMT7GgpJ9CBIXut6ALXPw==")
  /// 64 x 40, red, green and blue.
  static let animation = file(
    "/woJjmAAAcUlAQgCkgkAAGQASxiLFQDUE2Mwfi4QAQAgUWUAIIF/v2QuGggCIgsAAFAASxiLFYBd+P8CEQCsZ1Y5+OOg9wMIArMEAAAEAEwASxiL"
      + "FYBd/P8CEQAgVAgAAHz5Aw==")

  @Test(arguments: [lossless, lossy]) func `an image is read with its alpha`(file: [UInt8]) async throws {
    guard await reads() else { return }
    #expect(try Decoding.header(file) == ImageHeader(.jxl, width: 24, height: 20))
    let pixels = try await decoding.pixels(file)
    #expect((pixels.width, pixels.height, pixels.channels) == (24, 20, 4))
    // From 0 at the top to 255; blue from the bottom.
    #expect(isNear(pixels[12, 15], [198, 198, 57, 198], within: 10))
    let (decoded, _) = try await decoding.encoded(file, .with { $0.width = 12 })
    #expect((decoded.format, decoded.width, decoded.height) == (.png, 12, 10))
  }

  /// 16 x 8, floats in sRGB: red to the right, green to the bottom.
  private static let floats = file(
    "AAAADEpYTCANCocKAAAAFGZ0eXBqeGwgAAAAAGp4bCAAAAAJanhsbAoAAACIanhsY/8KwclBAggCAQDQAUsYEy8HhwCzAfBlRcYYfK/wYCDGGGNj8IIQ"
      + "jjHGiBj8Hi4CCIBruBeAQEAAv6IEAAAACAgA/PuBgAAgIAAUHAgIEAgI2INP9kA/HwQEbKHn7YKzAAAA/wcI2FwTEhJ+gIAfIOAHCBgaGuC0/wAB"
      + "h4eHBwgI")
  /// 8 x 8 in PQ: 203, 1,000 and, in the lower half, 100 cd/m2.
  private static let pq = file(
    "AAAADEpYTCANCocKAAAAFGZ0eXBqeGwgAAAAAGp4bCAAAAAJanhsbAoAAAA+anhsY/8KQQT8AOTRIw4HAAAAgAgCAQCEAEsYE+8CBwkpGOMyAN4XiAHg"
      + "IgRlKQO9gEAAAAAAAAAAAA==")

  @Test func `floating-point samples range from 0 to 1`() async throws {
    guard await reads() else { return }
    let pixels = try await decoding.pixels(Self.floats)
    #expect((pixels.width, pixels.height, pixels.channels) == (16, 8, 3))
    #expect(isNear(pixels[3, 5], [48, 160, 207], within: 1) && isNear(pixels[15, 0], [240, 0, 15], within: 1))
  }

  @Test func `an image in PQ is mapped as a PNG is`() async throws {
    guard await reads() else { return }
    let pixels = try await decoding.pixels(Self.pq)
    #expect(isNear(pixels[1, 1], [188, 188, 188], within: 1) && isNear(pixels[6, 1], [255, 255, 255], within: 1))
    #expect(isNear(pixels[1, 6], [137, 137, 137], within: 1))
    #expect(try await decoding.encoded(Self.pq, .with { $0.format = .png }).0.notes == .pq)
  }

  @Test func `an animation is refused, so that no wrong frame is shown`() async throws {
    guard await reads() else { return }
    let outcome = await decoding.run(try decoding.task(Self.animation, .check))
    guard case .failure(.unsupportedFormat) = outcome else { return #expect(Bool(false), "\(outcome)") }
  }

  @Test func `an image that may exceed the memory limit is refused`() async throws {
    guard await reads() else { return }
    let small = try Decoding(memory: 300 << 20)
    var task = try small.task(Self.lossless, .check)
    task.source = .bytes(Build.jxl([(0, 1), (1, 2), (2999, 13), (1, 3), (1, 1)]))
    let outcome = await small.run(task)
    guard case .failure(.outOfMemory) = outcome else { return #expect(Bool(false), "\(outcome)") }
  }

  @Test func `an image that is truncated anywhere is corrupt`() async throws {
    guard await reads() else { return }
    for length in 12..<Self.lossless.count {
      var task = try decoding.task(Self.lossless, .check)
      task.source = .bytes(Array(Self.lossless.prefix(length)))
      let outcome = await decoding.run(task)
      guard case .failure(.corrupt) = outcome else { return #expect(Bool(false), "\(length): \(outcome)") }
    }
  }

  // MARK: - Writing

  @Test(arguments: [1, 2, 3, 4]) func `an image is written with its colours and its alpha`(bands: Int) async throws {
    guard await writes() else { return }
    let picture = Pictures(width: 60, height: 40, samples: bands) { x, y in
      Array([x * 4, y * 6, 200 - x * 2, 255 - y * 3].prefix(bands == 2 ? 1 : bands)) + (bands == 2 ? [255 - y * 3] : [])
    }
    let (decoded, file) = try await decoding.encoded(picture.png(), .with { ($0.format, $0.quality) = (.jxl, 95) })
    #expect((decoded.format, decoded.width, decoded.height, decoded.bytes) == (.jxl, 60, 40, file.count))
    #expect(try Decoding.header(file) == ImageHeader(.jxl, width: 60, height: 40))
    let (written, source) = (try await decoding.pixels(file), try await decoding.pixels(picture.png()))
    #expect(written.channels == source.channels && written.meanDifference(from: source) < 2)
  }

  @Test func `the orientation of a photograph is applied, and its metadata is left out`() async throws {
    guard await writes() else { return }
    var photograph = try await decoding.encoded(Pictures.quarters(96, 64).png(), as: .jpeg)
    photograph.insert(contentsOf: Build.jpegEXIF(6), at: 2)
    let file = try await decoding.encoded(photograph, as: .jxl)
    #expect(try Decoding.header(file) == ImageHeader(.jxl, width: 64, height: 96))
    #expect(file.firstRange(of: Build.text("Exif")) == nil)
    #expect(try await decoding.pixels(file).meanDifference(from: decoding.pixels(photograph)) < 2)
  }

  @Test func `a higher quality makes a larger file, and artwork is lossless without a quality`() async throws {
    guard await writes() else { return }
    let picture = Pictures.hills(200, 150).png()
    var sizes: [Int] = []
    for quality in [20, 50, 80, 100] {
      sizes.append(try await decoding.encoded(picture, as: .jxl, quality: quality).count)
    }
    #expect(sizes == sizes.sorted() && Set(sizes).count == 4)
    #expect(try await decoding.encoded(picture, .with { $0.format = .jxl }).1.count == sizes[2])
    let artwork = Pictures.gif(20, 10, colors: [(255, 0, 0)])
    let file = try await decoding.encoded(artwork, .with { $0.format = .jxl }).1
    #expect(try await decoding.pixels(file) == decoding.pixels(artwork))
  }

  @Test func `a large image is written within the memory and the sandbox of a decoder`() async throws {
    guard await writes() else { return }
    let path = decoding.newPath()
    let task = try decoding.task(
      Pictures.hills(400, 300).png(), .encoded(path),
      .with { ($0.format, $0.width, $0.height, $0.enlarge) = (.jxl, 4000, 3000, true) })
    let decoded = try await decoding.run(task).get()
    #expect((decoded.format, decoded.width, decoded.height) == (.jxl, 4000, 3000))
    let small = Transform.with { $0.width = 400 }
    let written = try await decoding.pixels([UInt8](try Data(contentsOf: URL(filePath: path))), small)
    #expect(written.meanDifference(from: try await decoding.pixels(Pictures.hills(400, 300).png())) < 3)
  }

  @Test func `an image that may exceed the memory limit is not written`() async throws {
    guard await writes() else { return }
    let small = try Decoding(memory: 300 << 20)
    let task = try small.task(
      Pictures.quarters(8, 8).png(), .encoded(small.newPath()),
      .with { ($0.format, $0.width, $0.height, $0.fit, $0.enlarge) = (.jxl, 3000, 3000, .fill, true) })
    let outcome = await small.run(task)
    guard case .failure(.outOfMemory) = outcome else { return #expect(Bool(false), "\(outcome)") }
  }

  private func reads() async -> Bool { await decoding.formats().decode.contains(.jxl) }
  private func writes() async -> Bool { await decoding.formats().encode.contains(.jxl) }
}
