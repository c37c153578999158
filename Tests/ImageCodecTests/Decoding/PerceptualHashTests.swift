import ImageCodec
import Testing

/// The hashes of ImageHash 4.3.2 with Pillow 13, as `imagehash.phash(image)` prints them. test_image_facts.py of the
/// host tests compares the built worker with Pillow itself.
struct PerceptualHashTests {
  let decoding: Decoding

  init() throws { decoding = try Decoding.shared() }

  private func hash(_ file: [UInt8]) async throws -> String {
    let decoded = try await decoding.run(try decoding.task(file, .facts(.perceptualHash))).get()
    return String(try #require(decoded.facts.perceptualHash), radix: 16)
  }

  @Test(arguments: [
    (200, 150, "820217674707f7ed"), (31, 33, "aa7fc93e9204a07b"), (32, 32, "aa7f803af31ca05d"), (1, 1, "0"),
    (5, 400, "97302d0fc61747ad"), (640, 20, "8004bec17f44ff47"),
  ])
  func `the hash is that of ImageHash`(width: Int, height: Int, expected: String) async throws {
    let waves = Pictures.waves(width, height)
    #expect(try await hash(waves.png()) == expected)
    #expect(try await hash(waves.tiff()) == expected)
  }

  @Test(arguments: [
    ([255, 0, 0], "8000000000000000"), ([0, 0, 0], "0"), ([128, 128, 128], "8000000000000000"),
  ])
  func `rounding errors decide nothing in an image of one colour`(color: [Int], expected: String) async throws {
    #expect(try await hash(Pictures(width: 64, height: 64, samples: 3) { _, _ in color }.png()) == expected)
  }

  enum Shape: CaseIterable {
    case square, half, slope

    func value(_ x: Int, _ y: Int) -> Int {
      switch self {
      case .square: (16..<48).contains(x) && (16..<48).contains(y) ? 255 : 0
      case .half: x < 32 ? 255 : 0
      case .slope: x * 4
      }
    }

    var hash: String {
      switch self {
      case .square: "8200280028008200"
      case .half: "c400000000000000"
      case .slope: "8000000000000000"
      }
    }
  }

  @Test(arguments: Shape.allCases) func `equal coefficients are equal`(shape: Shape) async throws {
    let grey = Pictures(width: 64, height: 64, samples: 1) { x, y in [shape.value(x, y)] }
    #expect(try await hash(grey.png()) == shape.hash)
  }

  @Test func `neither alpha nor orientation nor a profile changes the hash`() async throws {
    let waves = Pictures.waves(200, 150)
    let clear = Pictures(width: 200, height: 150, samples: 4) { x, y in waves.pixel(x, y) + [(x + y) & 255] }
    #expect(try await hash(clear.png()) == "820217674707f7ed")
    #expect(try await hash(waves.png(extraChunks: Pictures.chunk("eXIf", Build.exif(6)))) == "820217674707f7ed")
    #expect(try await hash(waves.png(extraChunks: Pictures.chunk("gAMA", Build.big32(100_000)))) == "820217674707f7ed")
  }

  @Test func `the hash is that of the first frame, and of a drawing in its own size`() async throws {
    let gif = Pictures.gif(20, 20, colors: [(255, 0, 0), (0, 0, 0)])
    #expect(try await hash(gif) == "8000000000000000")
    let square = "<rect width='32' height='64' fill='#fff'/>"
    let svg = "<svg xmlns='http://www.w3.org/2000/svg' width='64' height='64'>\(square)</svg>"
    #expect(try await hash(Array(svg.utf8)) == "c400000000000000")
  }

  @Test func `a very long side is refused before the image is decoded`() async throws {
    func black(_ width: Int, _ height: Int) -> [UInt8] {
      let picture = PNGReaderTests.Picture(width: width, height: height, isInterlaced: false)
      return picture.png([PNGReaderTests.zeros(picture.bytesOfRows)])
    }
    let task = try decoding.task(black(1 << 20 + 1, 1), .facts(.perceptualHash))
    guard case .failure(.tooManyPixels) = await decoding.run(task) else {
      Issue.record("the hash of a side that is too long")
      return
    }
    #expect(try await hash(black(1, 1 << 20)) == "0")
  }

  @Test func `a damaged image has no hash`() async throws {
    let png = Pictures.waves(200, 150).png()
    let task = try decoding.task(Array(png.prefix(png.count / 2)), .facts(.perceptualHash))
    guard case .failure(.corrupt) = await decoding.run(task) else {
      Issue.record("the hash of a truncated image")
      return
    }
  }
}
