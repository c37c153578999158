import Foundation
import Testing

@testable import ImageCodec

/// Images with known pixels, decoded by the real decoder.
struct DecodeTests {
  let decoding: Decoding

  init() throws { decoding = try .shared() }

  @Test func `the decoder announces its formats and an active sandbox`() async {
    let formats = await decoding.formats()
    #expect(Set(formats.decode).isSuperset(of: [.jpeg, .png, .gif, .webp, .tiff]))
    #expect(Set(formats.encode).isSuperset(of: [.jpeg, .png, .webp]))
    #if os(Linux)
      #expect(Set(decoding.pool.statistics.sandbox).isSuperset(of: ["noNewPrivileges", "rlimits", "seccomp"]))
    #endif
  }

  @Test func `a PNG decodes to the pixels that it was made of`() async throws {
    let picture = Pictures.waves(37, 23)
    let pixels = try await decoding.pixels(picture.png())
    #expect((pixels.width, pixels.height, pixels.channels) == (37, 23, 3))
    for y in 0..<23 { for x in 0..<37 { #expect(pixels[x, y] == picture.pixel(x, y)) } }
  }

  @Test func `straight alpha is preserved`() async throws {
    let picture = Pictures(width: 8, height: 8, samples: 4) { x, y in [x * 30, y * 30, 200, x * 32] }
    let pixels = try await decoding.pixels(picture.png())
    #expect(pixels.channels == 4)
    for y in 0..<8 { for x in 0..<8 { #expect(pixels[x, y] == picture.pixel(x, y)) } }
  }

  @Test func `grey stays grey, and grey with alpha becomes colour with alpha`() async throws {
    let grey = Pictures(width: 5, height: 4, samples: 1) { x, y in [x * 50 + y] }
    let pixels = try await decoding.pixels(grey.png())
    #expect(pixels.channels == 1)
    #expect(pixels[4, 3] == [203])
    let veiled = Pictures(width: 5, height: 4, samples: 2) { x, _ in [100, x * 50] }
    let colored = try await decoding.pixels(veiled.png())
    #expect(colored[3, 0] == [100, 100, 100, 150])
  }

  @Test(arguments: [1, 2, 4]) func `a palette of few bits gives its colours`(depth: Int) async throws {
    let picture = Pictures(width: 9, height: 3, samples: 1, depth: depth) { x, y in [(x + y) % (1 << depth)] }
    var palette: [UInt8] = []
    for index in 0..<(1 << depth) { palette += [UInt8(index * 10), UInt8(255 - index * 10), 7] }
    let pixels = try await decoding.pixels(picture.png(palette: palette))
    let index = (8 + 2) % (1 << depth)
    #expect(pixels[8, 2] == [index * 10, 255 - index * 10, 7])
  }

  @Test func `sixteen bits become eight, of colours and of alpha`() async throws {
    let picture = Pictures(width: 6, height: 2, samples: 4, depth: 16) { x, _ in [x * 13107, 65535, 0, x * 13107] }
    let pixels = try await decoding.pixels(picture.png())
    #expect(isNear(pixels[3, 1], [153, 255, 0, 153], within: 1))
    #expect(isNear(pixels[5, 1], [255, 255, 0, 255], within: 1))
    let grey = Pictures(width: 6, height: 2, samples: 1, depth: 16) { x, _ in [x * 13107] }
    let greyPixels = try await decoding.pixels(grey.png())
    #expect(isNear(greyPixels[2, 0], [102], within: 1))
    let smaller = try await decoding.pixels(picture.png(), .with { $0.width = 3 })
    #expect(isNear(smaller[2, 0], [243, 255, 0, 230], within: 14))
  }

  @Test func `CMYK becomes sRGB`() async throws {
    let picture = Pictures(width: 16, height: 16, samples: 4) { x, _ in x < 8 ? [0, 0, 0, 0] : [0, 255, 255, 0] }
    let pixels = try await decoding.pixels(picture.tiff())
    #expect(pixels.channels == 3)
    #expect(isNear(pixels[2, 2], [255, 255, 255], within: 8))
    let red = pixels[12, 12]
    #expect(red[0] > 180 && red[1] < 90 && red[2] < 90)
  }

  @Test(arguments: [ImageFormat.jpeg, .png, .webp, .avif])
  func `an image written in a format can be read again`(format: ImageFormat) async throws {
    let picture = Pictures.quarters(64, 48)
    let (decoded, file) = try await decoding.encoded(
      picture.png(), .with { ($0.format, $0.quality) = (format, 95) })
    #expect(decoded.format == format)
    #expect(decoded.bytes == file.count)
    #expect((decoded.width, decoded.height, decoded.frames) == (64, 48, 1))
    let header = try Decoding.header(file)
    #expect((header.format, header.width, header.height) == (format, 64, 48))
    let pixels = try await decoding.pixels(file)
    for (x, y) in [(10, 10), (50, 10), (10, 40), (50, 40)] {
      #expect(isNear(pixels[x, y], picture.pixel(x, y), within: 8), "\(format) at \(x), \(y)")
    }
  }

  @Test(arguments: 1...8) func `every orientation gives the same upright image`(orientation: Int) async throws {
    // The file holds the picture as a camera in that position would store it.
    let upright = Pictures.quarters(96, 64)
    let isTurned = orientation >= 5
    let (width, height) = isTurned ? (64, 96) : (96, 64)
    let stored = Pictures(width: width, height: height, samples: 3) { x, y in
      switch orientation {
      case 2: upright.pixel(95 - x, y)
      case 3: upright.pixel(95 - x, 63 - y)
      case 4: upright.pixel(x, 63 - y)
      case 5: upright.pixel(y, x)
      case 6: upright.pixel(95 - y, x)
      case 7: upright.pixel(95 - y, 63 - x)
      case 8: upright.pixel(y, 63 - x)
      default: upright.pixel(x, y)
      }
    }
    var file = try await decoding.encoded(stored.png(), as: .jpeg)
    file.insert(contentsOf: Build.jpegEXIF(orientation), at: 2)
    let expected = try await decoding.pixels(try await decoding.encoded(upright.png(), as: .jpeg))

    let pixels = try await decoding.pixels(file)
    #expect((pixels.width, pixels.height) == (96, 64))
    #expect(pixels.meanDifference(from: expected) < 1.5)

    let crop = Transform.Crop(x: 48, y: 0, width: 48, height: 32)
    let green = try await decoding.pixels(file, .with { ($0.crop, $0.width) = (crop, 12) })
    #expect((green.width, green.height) == (12, 8))
    #expect(isNear(green[0, 7], [0, 255, 0], within: 12) && isNear(green[11, 0], [0, 255, 0], within: 12))

    let asStored = try await decoding.pixels(file, .with { $0.isOriented = false })
    #expect((asStored.width, asStored.height) == (width, height))
  }

  @Test(arguments: [("irot", 1), ("irot", 2), ("irot", 3), ("imir", 0), ("imir", 1)])
  func `an AVIF is oriented by its properties, or left as stored`(property: String, value: UInt8) async throws {
    let stored = Pictures.quarters(96, 64)
    var file = try await decoding.encoded(stored.png(), as: .avif)
    // The encoder associates the bit depths of the channels with the image; readers need not support that property.
    let place = try #require(file.firstRange(of: Build.text("pixi")))
    file.replaceSubrange(place.lowerBound..<(place.upperBound + 1), with: Build.text(property) + [value])
    let asStored = try await decoding.pixels(file, .with { $0.isOriented = false })
    #expect((asStored.width, asStored.height) == (96, 64))
    #expect(asStored.meanDifference(from: try await decoding.pixels(stored.png())) < 3)

    var jpeg = try await decoding.encoded(stored.png(), as: .jpeg)
    let orientation = try Decoding.header(file).orientation
    #expect(orientation != 1)
    jpeg.insert(contentsOf: Build.jpegEXIF(orientation), at: 2)
    let (turned, expected) = (try await decoding.pixels(file), try await decoding.pixels(jpeg))
    #expect((turned.width, turned.height) == (expected.width, expected.height))
    #expect(turned.meanDifference(from: expected) < 3)
  }

  @Test func `a decoder has the libraries of the source and of the result`() throws {
    func libraries(_ output: DecodeTask.Output, _ format: ImageFormat?) throws -> DecoderLibraries {
      try decoding.task(Pictures.quarters(4, 4).png(), output, .with { $0.format = format }).libraries
    }
    #expect(try libraries(.encoded("a"), .jxl) == .all)
    #expect(try libraries(.encoded("a"), .avif) == .common)
    #expect(try libraries(.encoded("a"), .webp) == .plain && libraries(.encoded("a"), nil) == .plain)
    #expect(try libraries(.placeholder, .jxl) == .plain)
    let drawing = Build.text("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"4\" height=\"4\"/>")
    #expect(try decoding.task(drawing, .encoded("a"), .with { $0.format = .png }).libraries == .all)
  }

  @Test func `frames that the decoder does not read do not count towards the limit`() {
    func task(_ format: ImageFormat, _ output: DecodeTask.Output) -> DecodeTask {
      let header = ImageHeader(format, width: 500, height: 500, frames: 1000)
      return DecodeTask(source: .bytes([]), header: header, output: output, maxPixels: 1_000_000)
    }
    #expect(task(.tiff, .check).pixels == 250_000)
    #expect(task(.tiff, .check).pixels == 250_000)
    #expect(task(.gif, .check).pixels == 250_000_000)
    #expect(task(.webp, .placeholder).pixels == 250_000)
  }

  @Test func `a PNG is oriented by its eXIf chunk`() async throws {
    let file = Pictures.quarters(20, 10).png(extraChunks: Pictures.chunk("eXIf", Build.exif(6)))
    let pixels = try await decoding.pixels(file)
    #expect((pixels.width, pixels.height) == (10, 20))
    #expect(pixels[9, 0] == [255, 0, 0] && pixels[0, 0] == [0, 0, 255])
  }

  @Test func `pixels outside a crop do not influence the result at any size`() async throws {
    let file = try await decoding.encoded(Pictures.quarters(400, 304).png(), as: .jpeg)
    for size in [6, 12, 33, 100] {
      let crop = Transform.Crop(x: 200, y: 152, width: 200, height: 152)
      let white = try await decoding.pixels(file, .with { ($0.crop, $0.width) = (crop, size) })
      #expect(
        isNear(white[0, 0], [255, 255, 255], within: 3) && isNear(white[size / 2, 0], [255, 255, 255], within: 3))
    }
    for x in [201, 203, 207] {
      let crop = Transform.Crop(x: x, y: 13, width: 191, height: 131)
      let green = try await decoding.pixels(file, .with { ($0.crop, $0.width) = (crop, 10) })
      #expect(isNear(green[0, 0], [0, 255, 0], within: 3))
    }
  }

  @Test func `transparent pixels do not colour their neighbours`() async throws {
    let picture = Pictures(width: 64, height: 64, samples: 4) { x, _ in x % 2 == 0 ? [255, 0, 0, 255] : [0, 255, 0, 0] }
    let pixels = try await decoding.pixels(picture.png(), .with { $0.width = 16 })
    #expect(isNear(pixels[8, 8], [255, 0, 0, 128], within: 4))
  }

  /// The last size is so large that libvips resizes it.
  @Test(arguments: [(320, 320), (128, 8), (8, 128), (20, 20), (3000, 2000)])
  func `resizing does not shift the image, with or without alpha`(width: Int, height: Int) async throws {
    let transform = Transform.with { ($0.width, $0.height, $0.fit, $0.enlarge) = (width, height, .fill, true) }
    for samples in [3, 4] {
      let picture = Pictures(width: 32, height: 32, samples: samples) { x, y in
        let isInside = (8..<24).contains(x) && (8..<24).contains(y)
        return [Int](repeating: isInside ? 255 : 0, count: 3) + (samples == 4 ? [isInside ? 255 : 64] : [])
      }
      let pixels = try await decoding.pixels(picture.png(), transform)
      for (x, y) in [(width / 4, height / 2), (width / 4 - 1, height / 3), (width / 2, height / 4), (1, 1)] {
        #expect(isNear(pixels[x, y], pixels[width - 1 - x, height - 1 - y], within: 1), "\(samples): \(x), \(y)")
      }
    }
  }

  @Test(arguments: [1.0, 4, 20]) func `a blur is as wide as its sigma`(sigma: Double) async throws {
    // The edge becomes the integral of the Gaussian: at one sigma from the edge its value is 0.159.
    let side = Int(sigma * 12)
    let picture = Pictures(width: 2 * side, height: 16, samples: 1) { x, _ in [x < side ? 0 : 255] }
    let pixels = try await decoding.pixels(picture.png(), .with { $0.blur = sigma })
    let place = Double(side) - 0.5 - sigma
    let (left, right) = (pixels[Int(place), 8][0], pixels[Int(place) + 1, 8][0])
    let value = Double(left) + (place - place.rounded(.down)) * Double(right - left)
    #expect(abs(value - 0.159 * 255) < 8, "\(value)")
  }

  @Test func `a variant has no metadata`() async throws {
    let picture = Pictures.quarters(60, 40)
    for format in [ImageFormat.webp, .png, .jpeg] {
      let file = try await decoding.encoded(picture.png(), as: format)
      for name in ["EXIF", "Exif", "VP8X", "XMP "] {
        #expect(Data(file).range(of: Data(name.utf8)) == nil, "\(format)")
      }
    }
    let transparent = Pictures(width: 20, height: 10, samples: 4) { x, _ in [x, 0, 0, x * 10] }
    let webp = try await decoding.encoded(transparent.png(), as: .webp)
    #expect(Data(webp).range(of: Data("EXIF".utf8)) == nil)
    #expect(try await decoding.pixels(webp)[10, 5][3] == 100)
  }

  @Test func `a large WebP is decoded in memory`() async throws {
    let gif = Pictures.gif(1000, 900, colors: [(UInt8, UInt8, UInt8)](repeating: (255, 0, 0), count: 40))
    let (all, webp) = try await decoding.encoded(gif, .with { ($0.frames, $0.width) = (.all, 1000) })
    #expect(all.frames == 40)
    let checked = try await decoding.run(try decoding.task(webp, .check)).get()
    #expect(checked.sourceWidth == 1000)
  }

  @Test func `alpha is blended onto the background for JPEG only`() async throws {
    let picture = Pictures(width: 32, height: 32, samples: 4) { _, _ in [0, 0, 0, 0] }
    let jpeg = try await decoding.encoded(picture.png(), .with { ($0.format, $0.background) = (.jpeg, 0x3366CC) }).1
    #expect(isNear(try await decoding.pixels(jpeg)[5, 5], [0x33, 0x66, 0xCC], within: 3))
    let webp = try await decoding.encoded(picture.png(), .with { $0.format = .webp }).1
    #expect(try await decoding.pixels(webp).channels == 4)
  }

  @Test func `grey on a coloured background becomes coloured`() async throws {
    let picture = Pictures(width: 40, height: 20, samples: 1) { _, _ in [128] }
    let pixels = try await decoding.pixels(
      picture.png(), .with { ($0.width, $0.height, $0.fit, $0.background) = (40, 40, .contain, 0xFF0000) })
    #expect((pixels.width, pixels.height) == (40, 40))
    #expect(pixels[0, 0] == [255, 0, 0] && pixels[20, 20] == [128, 128, 128])
  }

  @Test func `cover fills the box with the middle`() async throws {
    let picture = Pictures(width: 90, height: 30, samples: 3) { x, _ in
      x < 30 ? [255, 0, 0] : x < 60 ? [0, 255, 0] : [0, 0, 255]
    }
    let pixels = try await decoding.pixels(
      picture.png(), .with { ($0.width, $0.height, $0.fit) = (20, 20, .cover) })
    #expect((pixels.width, pixels.height) == (20, 20))
    #expect(isNear(pixels[10, 10], [0, 255, 0]) && isNear(pixels[1, 10], [0, 255, 0], within: 40))
  }

  /// With one row or column too many, and with many of both.
  @Test(arguments: [(101, 99, 50), (99, 101, 50), (64, 48, 3), (20, 10, 1), (40, 10, 10)])
  func `the result of cover is never larger than its box`(width: Int, height: Int, side: Int) async throws {
    let picture = Pictures(width: width, height: height, samples: 3) { x, y in [x, y, 0] }
    let transform = Transform.with { ($0.width, $0.height, $0.fit) = (side, side, .cover) }
    for file in [picture.png(), try await decoding.encoded(picture.png(), .with { $0.format = .jpeg }).1] {
      let pixels = try await decoding.pixels(file, transform)
      #expect((pixels.width, pixels.height) == (side, side))
    }
  }

  @Test func `grayscale applies to the background, too`() async throws {
    let picture = Pictures(width: 40, height: 20, samples: 3) { _, _ in [255, 0, 0] }
    for format in [ImageFormat.png, .jpeg] {
      let (_, file) = try await decoding.encoded(
        picture.png(),
        .with {
          ($0.width, $0.height, $0.fit, $0.background) = (40, 40, .contain, 0x00FF00)
          ($0.isGrayscale, $0.cornerRadius, $0.format) = (true, 8, format)
        })
      let pixels = try await decoding.pixels(file)
      #expect(pixels[20, 3][0] > pixels[20, 20][0] + 50, "green is brighter than red")
      for place in [(20, 3), (20, 20), (0, 0)] { #expect(Set(pixels[place.0, place.1].prefix(3)).count == 1) }
    }
  }

  @Test func `effects change the image as their names say`() async throws {
    let file = Pictures.quarters(64, 64).png()
    let grey = try await decoding.pixels(file, .with { $0.isGrayscale = true })
    #expect(grey.channels == 1)
    let round = try await decoding.pixels(file, .with { $0.cornerRadius = 16 })
    #expect(round.channels == 4)
    #expect(round[0, 0][3] == 0 && round[63, 63][3] == 0 && round[32, 32][3] == 255 && round[0, 32][3] == 255)
    let blurred = try await decoding.pixels(file, .with { $0.blur = 8 })
    let middle = blurred[32, 32]
    #expect(middle.allSatisfy { (90...190).contains($0) })
    #expect(isNear(blurred[2, 2], [255, 0, 0], within: 20))
  }

  @Test(arguments: [(1, 1), (8, 3), (300, 200)], [7.0, 30, 250])
  func `the widest blur changes neither the size nor the mean`(size: (width: Int, height: Int), sigma: Double)
    async throws
  {
    let picture = Pictures(width: size.width, height: size.height, samples: 1) { x, _ in [x % 2 == 0 ? 60 : 140] }
    let plain = try await decoding.pixels(picture.png())
    let pixels = try await decoding.pixels(picture.png(), .with { $0.blur = sigma })
    #expect((pixels.width, pixels.height) == size)
    func mean(_ pixels: Pixels) -> Int { pixels.bytes.reduce(0) { $0 + Int($1) } / pixels.bytes.count }
    #expect(abs(mean(pixels) - mean(plain)) <= 8)
  }

  @Test func `an animation keeps its frames as WebP, or only the first`() async throws {
    let gif = Pictures.gif(20, 10, colors: [(255, 0, 0), (0, 255, 0), (0, 0, 255)])
    let (all, webp) = try await decoding.encoded(gif, .with { ($0.frames, $0.width) = (.all, 10) })
    #expect((all.format, all.frames, all.width, all.height) == (.webp, 3, 10, 5))
    let header = try Decoding.header(webp)
    #expect((header.frames, header.width, header.height) == (3, 10, 5))
    let first = try await decoding.pixels(webp)
    #expect((first.width, first.height) == (10, 5))
    #expect(isNear(Array(first[5, 2].prefix(3)), [255, 0, 0], within: 12))
    let (one, _) = try await decoding.encoded(gif)
    #expect((one.frames, one.width, one.height) == (1, 20, 10))
  }

  /// libvips treats some screen sizes as mistakes of the writer.
  @Test(arguments: [(640, 480), (800, 600), (0, 0), (50, 40), (20, 40), (2100, 10)])
  func `a GIF is as large as its screen and its first frame together`(width: Int, height: Int) async throws {
    let gif = Pictures.gif(
      20, 10, colors: [(255, 0, 0), (0, 255, 0)], delay: 5, x: 30, y: 20, screen: (width, height))
    let size = (max(width, 50), max(height, 30))
    let header = try Decoding.header(gif)
    #expect((header.width, header.height) == size)
    let pixels = try await decoding.pixels(gif)
    #expect((pixels.width, pixels.height) == size)
    #expect(pixels[35, 25].prefix(3) == [255, 0, 0])
    #expect(pixels[49, 29].prefix(3) == [255, 0, 0])
    if size == (width, height) { #expect(pixels[size.0 - 1, size.1 - 1].last == 0) }
    let (all, webp) = try await decoding.encoded(gif, .with { $0.frames = .all })
    #expect((all.frames, all.width, all.height) == (2, size.0, size.1))
    let second = try Decoding.header(webp)
    #expect((second.frames, second.width, second.height) == (2, size.0, size.1))
    let checked = try await decoding.run(try decoding.task(gif, .check)).get()
    #expect((checked.sourceWidth, checked.sourceHeight) == size)
  }

  @Test(arguments: [nil, 10]) func `an animation keeps its delays at any size`(width: Int?) async throws {
    let colors: [(UInt8, UInt8, UInt8)] = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    let gif = Pictures.gif(20, 10, colors: colors, delay: 5, step: 10, loops: 3)
    let (_, webp) = try await decoding.encoded(gif, .with { ($0.frames, $0.width) = (.all, width) })
    let durations = chunks(of: webp, named: "ANMF").map { little($0, at: 12, count: 3) }
    #expect(durations == [50, 150, 250])
    let loops = chunks(of: webp, named: "ANIM").map { little($0, at: 4, count: 2) }
    #expect(loops == [4], "three more after the first, as GIF counts")
  }

  /// The contents of the chunks of a WebP with this name.
  private func chunks(of webp: [UInt8], named wanted: String) -> [[UInt8]] {
    var (position, found) = (12, [[UInt8]]())
    while position + 8 <= webp.count {
      let length = little(webp, at: position + 4, count: 4)
      let content = webp[(position + 8)..<(position + 8 + length)]
      if webp[position..<(position + 4)].elementsEqual(wanted.utf8) { found.append([UInt8](content)) }
      position += 8 + length + length % 2
    }
    return found
  }

  private func little(_ bytes: [UInt8], at position: Int, count: Int) -> Int {
    (0..<count).reduce(0) { $0 | Int(bytes[position + $1]) << (8 * $1) }
  }

  /// The frames' positions on a screen of 20 x 10, and their disposals.
  struct Holes: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let places: [(x: Int, y: Int, width: Int, height: Int)]
    var disposal: UInt8 = 1
    let areThere: Bool

    static let all: [Holes] = [
      Holes(testDescription: "all covered", places: [(0, 0, 20, 10), (0, 0, 20, 10)], areThere: false),
      Holes(testDescription: "covered again", places: [(0, 0, 20, 10), (0, 0, 20, 10)], disposal: 2, areThere: false),
      Holes(testDescription: "part over all", places: [(0, 0, 20, 10), (4, 2, 8, 4)], areThere: false),
      Holes(testDescription: "a part", places: [(4, 2, 8, 4), (4, 2, 8, 4)], areThere: true),
      Holes(testDescription: "halves in turn", places: [(0, 0, 10, 10), (10, 0, 10, 10)], disposal: 2, areThere: true),
      Holes(testDescription: "one after the other", places: [(0, 0, 10, 10), (10, 0, 10, 10)], areThere: true),
      Holes(testDescription: "part after all", places: [(0, 0, 20, 10), (4, 2, 8, 4)], disposal: 2, areThere: true),
    ]
  }

  /// No frame has alpha itself.
  @Test(arguments: Holes.all) func `an animation with parts that no frame covers is marked as transparent`(holes: Holes)
    async throws
  {
    let gif = Pictures.gif(
      20, 10, colors: [(255, 0, 0), (0, 0, 255)], places: holes.places, disposal: holes.disposal, isTransparent: true)
    let (_, webp) = try await decoding.encoded(gif, .with { $0.frames = .all })
    let header = try #require(chunks(of: webp, named: "VP8X").first)
    #expect(header[0] == (holes.areThere ? 0x12 : 0x02))
    let background = try #require(chunks(of: webp, named: "ANIM").first).prefix(4)
    #expect(background == (holes.areThere ? [0, 0, 0, 0] : [255, 255, 255, 255]))
    #expect(try Decoding.header(webp).frames == 2)
    _ = try await decoding.run(try decoding.task(webp, .check)).get()
  }

  @Test(arguments: [nil, 8]) func `a grey profile is not applied to colours`(width: Int?) async throws {
    let picture = Pictures(width: 16, height: 16, samples: 3) { _, _ in [230, 20, 20] }
    var file = try await decoding.encoded(picture.png(), as: .jpeg)
    file.insert(
      contentsOf: Build.segment(0xE2, Build.text("ICC_PROFILE\0") + [1, 1] + Build.greyProfile()), at: 2)
    let pixels = try await decoding.pixels(file, .with { $0.width = width })
    #expect(pixels.channels == 3)
    #expect(isNear(pixels[4, 4], [230, 20, 20]))
  }

  @Test func `a variant is in sRGB and has no profile`() async throws {
    let grey = Pictures(width: 16, height: 16, samples: 1) { x, _ in [x * 10] }
    var file = try await decoding.encoded(grey.png(), as: .jpeg)
    file.insert(
      contentsOf: Build.segment(0xE2, Build.text("ICC_PROFILE\0") + [1, 1] + Build.greyProfile()), at: 2)
    for format in await decoding.formats().encode {
      let variant = try await decoding.encoded(file, as: format)
      #expect(variant.count < 2000, "\(format)")
      for name in ["ICCP", "iCCP", "ICC_PROFILE", "prof"] { #expect(variant.firstRange(of: Build.text(name)) == nil) }
    }
  }

  @Test func `one extra sample of a TIFF is alpha`() async throws {
    let color = Pictures(width: 4, height: 4, samples: 5) { _, _ in [230, 20, 30, 200, 99] }
    let pixels = try await decoding.pixels(color.tiff(photometric: 2))
    #expect(pixels.channels == 4)
    #expect(pixels[1, 1] == [230, 20, 30, 200])
    let grey = Pictures(width: 4, height: 4, samples: 3) { _, _ in [83, 66, 189] }
    let two = try await decoding.pixels(grey.tiff(photometric: 1))
    #expect(two.channels == 2 || two.channels == 4)
    #expect(two[1, 1].first == 83 && two[1, 1].last == 66)
  }

  @Test(
    arguments: [
      ([0], nil), ([0, 0, 0], nil), ([1], 200), ([2], 200), ([0, 2], 99), ([0, 0, 2], 42),
    ] as [([Int], Int?)])
  func `an extra sample of a TIFF that is declared not to be alpha is ignored`(kinds: [Int], alpha: Int?) async throws {
    for (photometric, color) in [(1, [83]), (2, [230, 20, 30])] {
      let samples = color + [200, 99, 42].prefix(kinds.count)
      let picture = Pictures(width: 4, height: 4, samples: samples.count) { _, _ in samples }
      // libvips reads at most five samples.
      guard samples.count <= 5 else { continue }
      let pixels = try await decoding.pixels(picture.tiff(photometric: photometric, extraSamples: kinds))
      #expect(pixels.channels == (alpha == nil ? color.count : 4))
      if let alpha { #expect(pixels[1, 1].last == alpha) }
      if kinds != [1] { #expect(pixels[1, 1].first == color[0]) }
    }
  }

  /// As in Chromium. The specification lets decoders look at the low bits only.
  @Test(arguments: [(255, false), (2, false), (1, true), (0, true)])
  func `a transparent grey outside the range of the bit depth is ignored`(grey: Int, isTransparent: Bool) async throws {
    let picture = Pictures(width: 8, height: 2, samples: 1, depth: 1) { x, _ in [x % 2] }
    let pixels = try await decoding.pixels(picture.png(extraChunks: Pictures.chunk("tRNS", Build.big16(grey))))
    #expect(pixels.channels == (isTransparent ? 4 : 1))
    if isTransparent { #expect(pixels[0, 0].last == (grey == 0 ? 0 : 255)) }
  }

  @Test func `an image that is larger than its cover box is cut before it is scaled`() async throws {
    let wave = Pictures(width: 300, height: 20, samples: 3) { x, y in [x * 7 & 255, y * 12, (x + y) * 3 & 255] }
    let whole = try await decoding.pixels(wave.png(), .with { ($0.height, $0.enlarge) = (100, true) })
    let covered = try await decoding.pixels(
      wave.png(), .with { ($0.width, $0.height, $0.fit, $0.enlarge) = (60, 100, .cover, true) })
    #expect((covered.width, covered.height) == (60, 100))
    for y in 0..<100 { for x in 0..<60 { #expect(isNear(covered[x, y], whole[720 + x, y], within: 1)) } }
    let long = Pictures(width: 10_000, height: 10, samples: 1) { x, _ in [x & 255] }
    let square = try await decoding.pixels(
      long.png(), .with { ($0.width, $0.height, $0.fit, $0.enlarge) = (2000, 2000, .cover, true) })
    #expect((square.width, square.height) == (2000, 2000))
  }

  @Test func `a photograph in few colours becomes a lossy WebP`() async throws {
    var chance = SystemRandomNumberGenerator()
    let noise = (0..<(200 * 200)).map { _ in Int.random(in: 0...255, using: &chance) }
    let picture = Pictures(width: 200, height: 200, samples: 1) { x, y in [noise[200 * y + x]] }
    let palette = (UInt8.min...UInt8.max).flatMap { [$0, $0, 255 - $0] }
    let (_, webp) = try await decoding.encoded(picture.png(palette: palette), .with { $0.format = .webp })
    #expect(webp.firstRange(of: Build.text("VP8 ")) != nil)
  }

  @Test func `artwork becomes a lossless WebP if it is not resized`() async throws {
    let palette: [UInt8] = [255, 255, 255, 255, 0, 0, 0, 0, 255]
    let lines = Pictures(width: 60, height: 40, samples: 1, depth: 2) { x, y in [(x * y + x) % 7 == 0 ? 1 + y % 2 : 0] }
    let file = lines.png(palette: palette)
    let expected = try await decoding.pixels(file)
    let (_, webp) = try await decoding.encoded(file, .with { $0.format = .webp })
    #expect(try await decoding.pixels(webp) == expected)
    let crop = Transform.Crop(x: 0, y: 10, width: 60, height: 20)
    let (_, part) = try await decoding.encoded(file, .with { ($0.format, $0.crop) = (.webp, crop) })
    #expect(try await decoding.pixels(part).bytes == Array(expected.bytes[(10 * 180)..<(30 * 180)]))
    let (_, lossy) = try await decoding.encoded(file, .with { ($0.format, $0.quality) = (.webp, 80) })
    #expect(try await decoding.pixels(lossy) != expected)
    #expect(lossy.firstRange(of: Build.text("VP8 ")) != nil)
    let (_, smaller) = try await decoding.encoded(file, .with { ($0.format, $0.width) = (.webp, 30) })
    #expect(smaller.firstRange(of: Build.text("VP8 ")) != nil)
    let gif = Pictures.gif(20, 10, colors: [(255, 0, 0), (0, 0, 255)])
    let (_, animation) = try await decoding.encoded(gif, .with { $0.frames = .all })
    #expect(animation.firstRange(of: Build.text("VP8L")) != nil && animation.firstRange(of: Build.text("VP8 ")) == nil)
    #expect(try await decoding.pixels(animation)[5, 5].prefix(3) == [255, 0, 0])
  }

  @Test func `an AVIF of default quality is not larger than a JPEG of default quality`() async throws {
    let picture = Pictures.hills(400, 300).png()
    let jpeg = try await decoding.encoded(picture, .with { $0.format = .jpeg }).1
    let avif = try await decoding.encoded(picture, .with { $0.format = .avif }).1
    #expect(avif.count < jpeg.count)
    let (lower, higher) = (
      try await decoding.encoded(picture, as: .avif, quality: 55),
      try await decoding.encoded(picture, as: .avif, quality: 65)
    )
    #expect(lower.count < avif.count && avif.count < higher.count)
  }

  @Test func `a TIFF in Lab is decoded, and one of signed samples is not taken for another`() async throws {
    let lab = Pictures(width: 4, height: 4, samples: 3) { _, _ in [128, 0, 0] }
    let pixels = try await decoding.pixels(lab.tiff(photometric: 8))
    #expect(isNear(pixels[1, 1], [119, 119, 119]))
    let signed = Pictures(width: 4, height: 4, samples: 3, depth: 16) { _, _ in [300, 200, 100] }
    let outcome = await decoding.run(try decoding.task(signed.tiff(sampleFormat: 2), .check))
    guard case .failure(.unsupportedFormat) = outcome else { return #expect(Bool(false), "\(outcome)") }
  }

  @Test func `a TIFF in YCbCr is refused, as its samples are not turned into colours`() async throws {
    let picture = Pictures(width: 4, height: 4, samples: 3) { _, _ in [128, 60, 200] }
    let outcome = await decoding.run(try decoding.task(picture.tiff(photometric: 6), .check))
    guard case .failure(.unsupportedFormat) = outcome else { return #expect(Bool(false), "\(outcome)") }
  }

  /// Red, green and blue of 0xRRGGBB.
  private func samples(_ color: UInt32) -> [Int] {
    [color >> 16, color >> 8, color].map { sample in Int(sample & 255) }
  }

  @Test func `a placeholder has the mean colour and comes with a variant`() async throws {
    let (red, blue) = ([255, 0, 0], [0, 0, 255])
    let picture = Pictures(width: 200, height: 100, samples: 3) { x, _ in x < 100 ? red : blue }
    let alone = try await decoding.run(try decoding.task(picture.png(), .placeholder)).get()
    let placeholder = try #require(alone.placeholder)
    #expect(isNear(samples(placeholder.color), [127, 0, 127], within: 2))
    #expect((10...30).contains(placeholder.thumbHash.count))
    let path = decoding.newPath()
    let both = try await decoding.run(
      try decoding.task(picture.png(), .encoded(path), .with { $0.width = 10 }, placeholder: true)
    ).get()
    let ofResult = try #require(both.placeholder)
    #expect(isNear(samples(ofResult.color), [127, 0, 127], within: 4))
    #expect((both.sourceWidth, both.sourceHeight, both.width) == (200, 100, 10))
  }
}
