import Foundation
import ImageCodec
import Testing

/// SVG, decoded by the real decoder.
struct DrawingTests {
  let decoding: Decoding

  init() throws { decoding = try .shared() }

  private static func svg(_ attributes: String, _ content: String = "") -> [UInt8] {
    Build.text("<svg xmlns=\"http://www.w3.org/2000/svg\" \(attributes)>\(content)</svg>")
  }

  private static let halves = "<rect width=\"50%\" height=\"100%\" fill=\"#f00\"/>"

  /// The size as in Chromium's naturalWidth and naturalHeight.
  static let sizes: [(attributes: String, width: Int, height: Int)] = [
    ("", 300, 150), ("width=\"10\" height='20'", 10, 20), ("width = \"10.4\" height=\"20.6px\"", 10, 21),
    ("width=\"10\"", 10, 150), ("height=\"10\"", 300, 10), ("viewBox=\"0 0 100 100\"", 150, 150),
    ("viewBox=\"0,0,400,100\"", 300, 75), ("width=\"50\" viewBox=\"0 0 100 200\"", 50, 100),
    ("height=\"50\" viewBox=\"0 0 100 200\"", 25, 50), ("width=\"100%\" height=\"40\" viewBox=\"0 0 10 10\"", 40, 40),
    ("width=\"1in\" height=\"2cm\"", 96, 76), ("width=\"10rem\" height=\"5em\"", 160, 80),
    ("width=\"10mm\" height=\"10pt\"", 38, 13),
    ("width=\"1e2\" height=\"5pc\"", 100, 80), ("width=\"2em\" height=\"20Q\"", 32, 19),
    ("width=\"50%\" height=\"20\"", 300, 20), ("width=\"abc\" height=\"20\"", 300, 20),
    ("viewBox=\"0 0 0 10\"", 300, 150), ("preserveAspectRatio=\"none\" viewBox=\"0 0 1 1\"", 300, 150),
    ("data-x=\"a > b\" width=\"10\" height=\"20\"", 10, 20),
  ]

  @Test(arguments: sizes)
  func `a drawing has the size that browsers give it`(attributes: String, width: Int, height: Int) async throws {
    let file = Self.svg(attributes, Self.halves)
    #expect(try Decoding.header(file) == ImageHeader(.svg, width: width, height: height))
    let pixels = try await decoding.pixels(file)
    #expect((pixels.width, pixels.height) == (width, height))
    // librsvg interprets these units itself, and differently.
    if attributes.contains("em") || attributes.contains("50%") { return }
    #expect(pixels[1, height / 2] == [255, 0, 0, 255] && pixels[width - 2, height / 2] == [0, 0, 0, 0])
  }

  @Test(arguments: [
    "width=\"0\"", "width=\"-5\"", "width=\"0.3\" height=\"0.3\"", "width=\"1e300\"", "width=\"9999999999\"",
  ])
  func `a size without pixels is an error`(attributes: String) {
    #expect(throws: ImageHeaderError.self) { try Decoding.header(Self.svg(attributes)) }
  }

  @Test func `prefixes and UTF-16 are read`() async throws {
    let text =
      "<?xml version=\"1.0\"?><a-b:svg xmlns:a-b=\"http://www.w3.org/2000/svg\" width=\"20\" height=\"10\">"
      + "<a-b:rect width=\"10\" height=\"10\" fill=\"#00f\"/></a-b:svg>"
    let little = text.utf16.flatMap { Build.little16(Int($0)) }
    let big = text.utf16.flatMap { Build.big16(Int($0)) }
    for file in [Build.text(text), [0xFF, 0xFE] + little, [0xFE, 0xFF] + big, little] {
      #expect(Recognition(prefix: file, isComplete: true) == .image(.svg))
      #expect(try Decoding.header(file) == ImageHeader(.svg, width: 20, height: 10))
    }
    for file in [Build.text(text), [0xFF, 0xFE] + little, [0xFE, 0xFF] + big] {
      let pixels = try await decoding.pixels(file)
      #expect(pixels[5, 5] == [0, 0, 255, 255] && pixels[15, 5] == [0, 0, 0, 0])
    }
  }

  @Test func `a drawing is rendered in the requested size and is sharp at any size`() async throws {
    let file = Self.svg(
      "viewBox=\"0 0 30 20\" width=\"30\" height=\"20\"", "<rect x=\"10\" width=\"1\" height=\"20\"/>")
    let large = try await decoding.pixels(file, .with { ($0.width, $0.enlarge) = (300, true) })
    #expect((large.width, large.height) == (300, 200))
    // The edge would be soft if it were enlarged from pixels.
    #expect(large[99, 50] == [0, 0, 0, 0] && large[100, 50] == [0, 0, 0, 255])
    #expect(large[109, 50] == [0, 0, 0, 255] && large[110, 50] == [0, 0, 0, 0])
    let usual = try await decoding.pixels(file, .with { $0.width = 300 })
    #expect((usual.width, usual.height) == (30, 20), "without enlarge no larger than it is")
    let part = try await decoding.pixels(
      file,
      .with {
        ($0.crop, $0.width, $0.enlarge) = (Transform.Crop(x: 10, y: 0, width: 10, height: 20), 100, true)
      })
    #expect((part.width, part.height) == (100, 200))
    #expect(part[0, 9] == [0, 0, 0, 255] && part[9, 9] == [0, 0, 0, 255] && part[10, 9] == [0, 0, 0, 0])
    let stretched = try await decoding.pixels(
      file, .with { ($0.width, $0.height, $0.fit, $0.enlarge) = (60, 200, .fill, true) })
    #expect(stretched[20, 100] == [0, 0, 0, 255] && stretched[22, 100] == [0, 0, 0, 0])
    let (decoded, _) = try await decoding.encoded(file)
    #expect((decoded.format, decoded.sourceWidth, decoded.sourceHeight) == (.png, 30, 20))
  }

  @Test func `text is drawn with the fonts that are open before the sandbox closes`() async throws {
    guard FileManager.default.fileExists(atPath: "/usr/share/fonts") else { return }
    for family in ["sans-serif", "serif", "monospace", "A Font That Nobody Has"] {
      func letter(_ text: String) async throws -> Pixels {
        try await decoding.pixels(
          Self.svg(
            "width=\"40\" height=\"40\"",
            "<text x=\"5\" y=\"33\" font-size=\"33\" font-weight=\"bold\" font-family=\"\(family)\">\(text)</text>"))
      }
      // A character without a font is a box, which is as high as a letter.
      let dash = try await letter("-")
      let inkedRows = (0..<40).count { row in (0..<40).contains { dash[$0, row][3] > 128 } }
      #expect((1...10).contains(inkedRows), "\(family)")
    }
  }

  @Test(arguments: ["image/gif", "image/bmp", "image/svg+xml"])
  func `an image inside a drawing is drawn`(mediaType: String) async throws {
    let row = (0..<4).flatMap { _ in [UInt8](arrayLiteral: 0, 0, 255) }
    let inside =
      switch mediaType {
      case "image/bmp": Bitmap(width: 4, height: 4, bits: 24, rows: [[UInt8]](repeating: row, count: 4)).file
      case "image/svg+xml": Self.svg("width=\"4\" height=\"4\"", "<rect width=\"4\" height=\"4\" fill=\"red\"/>")
      default: Pictures.gif(4, 4, colors: [(255, 0, 0)])
      }
    let url = "data:\(mediaType);base64,\(Data(inside).base64EncodedString())"
    let image = "<image width=\"8\" height=\"8\" href=\"\(url)\"/>"
    #expect(try await decoding.pixels(Self.svg("width=\"8\" height=\"8\"", image))[4, 4] == [255, 0, 0, 255])
  }

  @Test func `a drawing that spoils the state of a font does not spoil the next`() async throws {
    func text(_ size: Int) -> [UInt8] {
      Self.svg("width=\"24\" height=\"24\"", "<text y=\"20\" font-size=\"\(size)\" font-family=\"serif\">A</text>")
    }
    let expected = try await decoding.pixels(text(12))
    for size in [100_000, 12, 2_000_000, 12] {
      let outcome = await decoding.run(try decoding.task(text(size), .check))
      if size == 12 {
        #expect(throws: Never.self) { try outcome.get() }
        #expect(try await decoding.pixels(text(12)) == expected)
      }
    }
  }

  @Test func `a drawing cannot include files or network resources`() async throws {
    let secret = decoding.newPath()
    try Data(Pictures.quarters(8, 8).png()).write(to: URL(filePath: secret))
    let include = "<!DOCTYPE svg [<!ENTITY x SYSTEM \"file:///etc/hostname\">]>"
    for reference in ["file://\(secret)", secret, "http://127.0.0.1:1/a.png"] {
      let file = Self.svg(
        "width=\"8\" height=\"8\" xmlns:xlink=\"http://www.w3.org/1999/xlink\"",
        "<image width=\"8\" height=\"8\" href=\"\(reference)\" xlink:href=\"\(reference)\"/>"
          + "<use href=\"\(reference)#a\"/><style>@import url(\"\(reference)\");</style>")
      let pixels = try await decoding.pixels(file)
      #expect(pixels.bytes.allSatisfy { $0 == 0 })
    }
    let outcome = await decoding.run(
      try decoding.task(Build.text(include) + Self.svg("width=\"8\" height=\"8\"", "<text>&x;</text>"), .check))
    #expect(outcome != .failure(.crashed))
    let inside = Data(Pictures.quarters(8, 8).png()).base64EncodedString()
    let embedded = Self.svg(
      "width=\"8\" height=\"8\"", "<image width=\"8\" height=\"8\" href=\"data:image/png;base64,\(inside)\"/>")
    #expect(try await decoding.pixels(embedded)[1, 1] == [255, 0, 0, 255])
  }

  // MARK: Bombs

  private static let laughs = (1...9).reduce("<g id=\"a0\"><rect width=\"1\" height=\"1\"/></g>") { text, level in
    text + "<g id=\"a\(level)\">" + String(repeating: "<use href=\"#a\(level - 1)\"/>", count: 10) + "</g>"
  }
  private static let patterns = (1...12).reduce(
    "<pattern id=\"p0\" width=\".1\" height=\".1\"><rect width=\"1\" height=\"1\"/></pattern>"
  ) {
    text, level in
    text
      + "<pattern id=\"p\(level)\" width=\".01\" height=\".01\"><rect width=\"9\" height=\"9\" fill=\"url(#p\(level - 1))\"/></pattern>"
  }
  private static let entities =
    "<!DOCTYPE svg [<!ENTITY a0 \"aaaaaaaaaa\">"
    + (1...9).map { "<!ENTITY a\($0) \"" + String(repeating: "&a\($0 - 1);", count: 10) + "\">" }.joined() + "]>"

  static let bombs: [(name: String, file: [UInt8])] = [
    ("uses of uses", svg("width=\"10\" height=\"10\"", "<defs>\(laughs)</defs><use href=\"#a9\"/>")),
    (
      "patterns of patterns",
      svg(
        "width=\"500\" height=\"500\"",
        "<defs>\(patterns)</defs><rect width=\"500\" height=\"500\" fill=\"url(#p12)\"/>")
    ),
    ("entities of entities", Build.text(entities) + svg("width=\"10\" height=\"10\"", "<text>&a9;</text>")),
    ("a circle", svg("width=\"10\" height=\"10\"", "<g id=\"a\"><use href=\"#a\"/></g>")),
    ("very deep", svg("width=\"10\" height=\"10\"", String(repeating: "<g>", count: 200_000))),
    (
      "very deep and whole",
      svg(
        "width=\"10\" height=\"10\"", String(repeating: "<g>", count: 20_000) + String(repeating: "</g>", count: 20_000)
      )
    ),
    ("a million elements", svg("width=\"10\" height=\"10\"", String(repeating: "<g/>", count: 1_100_000))),
    (
      "a wide blur",
      svg(
        "width=\"4000\" height=\"4000\"",
        "<filter id=\"f\" x=\"-9\" y=\"-9\" width=\"99\" height=\"99\"><feGaussianBlur stdDeviation=\"900\"/><feMorphology radius=\"900\"/></filter><rect width=\"4000\" height=\"4000\" filter=\"url(#f)\"/>"
      )
    ),
  ]

  /// The decode time limit ends some of them; one second keeps the test short.
  @Test(arguments: bombs) func `a bomb ends by itself or by the time limit`(name: String, file: [UInt8]) async throws {
    let decoding = try Decoding(timeout: .seconds(2), memory: 1 << 30)
    let outcome = await decoding.run(try decoding.task(file, .check))
    switch outcome {
    case .success, .failure(.corrupt), .failure(.timedOut), .failure(.outOfMemory), .failure(.unsupportedFormat): break
    default: Issue.record("\(name): \(outcome)")
    }
    let after = try await decoding.run(try decoding.task(Self.svg("width=\"9\" height=\"9\""), .check)).get()
    #expect(after.sourceWidth == 9)
  }

  @Test func `too many pixels are refused, by the drawing's own size and by the result's`() async throws {
    let large = await decoding.run(try decoding.task(Self.svg("width=\"99999\" height=\"99999\""), .check))
    guard case .failure(.tooManyPixels) = large else { return #expect(Bool(false), "\(large)") }
    let long = try decoding.task(
      Self.svg("width=\"1000\" height=\"1\""), .pixels(decoding.newPath()),
      .with { ($0.width, $0.enlarge) = (40_000, true) })
    guard case .failure(.tooManyPixels(_, let figures)) = await decoding.run(long) else { return #expect(Bool(false)) }
    #expect(figures.maxSide == 32_767)
  }

  @Test func `truncated and broken drawings do not crash the decoder`() async throws {
    let file = Self.svg(
      "width=\"30\" height=\"20\"",
      "<defs><linearGradient id=\"g\"><stop stop-color=\"red\"/></linearGradient></defs><rect width=\"9\" height=\"9\" fill=\"url(#g)\"/>"
        + "<path d=\"M1 2 C 3 4 5 6 7 8 A 3 3 0 0 1 9 9 Z\" stroke=\"#123\"/><text x=\"1\" y=\"9\">&amp;a</text>")
    let decoding = try Decoding()
    let task = try decoding.task(file, .check)
    var generator = SeededGenerator(state: 20_261_124)
    for index in 0..<600 {
      var next = task
      next.source = .bytes(index < file.count ? Array(file.prefix(index + 1)) : generator.broken(file))
      let outcome = await decoding.run(next)
      #expect(outcome != .failure(.crashed))
    }
    #expect(decoding.pool.statistics.crashed == 0)
  }
}
