import Testing

@testable import ImageCodec

/// Images that are cut, and images that are whole. Each is compared with the simplest reader of the whole file.
struct TruncationScanTests {
  struct Example: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var format: ImageFormat
    var bytes: [UInt8]
    /// The first length at which the file is whole.
    var end: Int
    /// The other lengths at which it may be whole, since nothing tells that something follows.
    var boundaries: [Range<Int>] = []

    init(_ name: String, _ format: ImageFormat, _ bytes: [UInt8], missing: Int = 0, boundaries: [Range<Int>] = []) {
      (testDescription, self.format, self.bytes, end) = (name, format, bytes, bytes.count - missing)
      self.boundaries = boundaries
    }

    /// A file of boxes: it may end after a box, or within the header of the next one.
    init(_ name: String, _ format: ImageFormat, boxes: [[UInt8]]) {
      let ends = boxes.dropLast().reduce(into: [0]) { $0.append($0.last! + $1.count) }
      self.init(name, format, boxes.flatMap(\.self), boundaries: ends.map { $0..<($0 + 8) })
    }
  }

  static let examples: [Example] = {
    let thumbnail = Build.segment(0xE1, [0xFF, 0xD8] + Build.segment(0xDA, []) + [0xFF, 0xD9])
    let jpeg = Build.jpeg(2, 2, before: thumbnail)
    let scans = [0x12, 0xFF, 0, 0xFF, 0xD3, 0xFF, 0xFF, 0] + Build.segment(0xC4, [0, 1]) + Build.segment(0xDA, [1])
    let progressive = Build.jpeg(2, 2, frame: 0xC2).dropLast(2) + scans + [0x34, 0xFF, 0xD9]
    let avif = Build.heif(Build.ftyp("avif"), properties: [Build.ispe(2, 2)])
    let (type, data) = (Build.ftyp("avif"), Build.box("mdat", [1, 2, 3, 4]))
    let meta = Array(avif.dropFirst(type.count).dropLast(data.count))
    let long: [UInt8] = Build.big32(1) + Build.text("mdat") + Build.big32(0) + Build.big32(20) + [1, 2, 3, 4]
    return [
      Example("JPEG", .jpeg, jpeg), Example("progressive JPEG", .jpeg, Array(progressive)),
      Example("PNG", .png, Build.png(2, 2), missing: 4),
      Example("GIF", .gif, Build.gif(2, 2, frames: 3)), Example("still GIF", .gif, Build.gif(1, 1, frames: 1)),
      Example("lossy WebP", .webp, Build.webpLossy(2, 2)), Example("lossless WebP", .webp, Build.webpLossless(2, 2)),
      Example("extended WebP", .webp, Build.webpExtended(2, 2, frames: 2, exif: [1, 2, 3])),
      Example("AVIF", .avif, boxes: [type, meta, data]),
      Example("AVIF with a long box", .avif, boxes: [type, meta, long]),
      Example("HEIC", .heic, boxes: [Build.ftyp("heic"), meta, Build.box("free", [0, 0]), data]),
      Example(
        "JPEG XL", .jxl,
        boxes: [
          Build.box("JXL ", [0x0D, 0x0A, 0x87, 0x0A]), Build.ftyp("jxl ", "jxl "),
          Build.box("jxlc", [0xFF, 0x0A, 1, 2]),
        ]),
      Example(
        "JPEG 2000", .jp2,
        boxes: [
          Build.box("jP  ", [0x0D, 0x0A, 0x87, 0x0A]), Build.ftyp("jp2 "), Build.box("jp2h", [1]),
          Build.box("jp2c", [0xFF, 0x4F, 0xFF, 0x51]),
        ]),
    ]
  }()

  private func isCut(_ bytes: some Collection<UInt8>, _ format: ImageFormat, pieces: () -> Int) throws -> Bool {
    var scan = try #require(TruncationScan(format))
    var rest = Array(bytes)[...]
    while !rest.isEmpty {
      let piece = Array(rest.prefix(pieces()))
      piece.withUnsafeBytes { scan.consume($0) }
      rest = rest.dropFirst(piece.count)
    }
    return scan.isCut
  }

  @Test(arguments: examples) func `an image is cut at every byte before its end`(example: Example) throws {
    for length in 0...example.bytes.count {
      let prefix = example.bytes.prefix(length)
      let expected = length < example.end && !example.boundaries.contains { $0.contains(length) }
      for pieces in [1, 3, 1000] {
        #expect(try isCut(prefix, example.format) { pieces } == expected, "\(length) bytes, \(pieces) at a time")
      }
      #expect(try isCut(prefix, example.format) { .random(in: 1...40) } == expected, "\(length) bytes")
    }
  }

  @Test(
    arguments: examples,
    [
      [0], [0xFF], [0xFF, 0xD8, 0xFF, 0xE1], Array("garbage behind the end".utf8), Array(repeating: 0, count: 70_000),
      Array("\0\0\0\u{1}mpvd".utf8), examples[0].bytes,
    ] as [[UInt8]])
  func `an image with bytes behind its end is whole`(example: Example, garbage: [UInt8]) throws {
    for pieces in [1, 1000] { #expect(try !isCut(example.bytes + garbage, example.format) { pieces }) }
  }

  @Test(arguments: [
    Example("JPEG-LS", .jpeg, [0xFF, 0xD8, 0xFF, 0xF7, 0, 9, 1]),
    Example("JPEG with a short segment", .jpeg, [0xFF, 0xD8, 0xFF, 0xE1, 0, 1]),
    Example("PNG without a chunk", .png, Array(Build.png(2, 2).prefix(33)) + [0, 0, 0, 9, 1, 2, 3, 4, 5]),
    Example("GIF with an unknown block", .gif, Build.gif(1, 1, frames: 1).dropLast() + [7, 1]),
    Example("WebP of unknown length", .webp, Build.text("RIFF") + [255, 255, 255, 255] + Build.text("WEBPVP8 ")),
    Example("WebP of length 0", .webp, Build.text("RIFF") + [0, 0, 0, 0] + Build.text("WEBPVP8 ")),
    Example("AVIF with a box to the end", .avif, Build.ftyp("avif") + [0, 0, 0, 0] + Build.text("mdat") + [1]),
    Example("AVIF with an unknown box", .avif, Build.ftyp("avif") + [0, 0, 9, 9] + Build.text("mpvd") + [1]),
    Example("AVIF with a short box", .avif, Build.ftyp("avif") + [0, 0, 0, 7] + Build.text("mdat") + [1]),
    Example("bare JPEG XL", .jxl, [0xFF, 0x0A, 1, 2, 3, 4, 5, 6, 7]),
    Example("bare JPEG 2000", .jp2, [0xFF, 0x4F, 0xFF, 0x51, 1, 2, 3, 4, 5, 6]),
  ])
  func `an image whose end is unknown counts as whole`(example: Example) throws {
    for pieces in [1, 1000] { #expect(try !isCut(example.bytes, example.format) { pieces }) }
  }

  @Test(arguments: [ImageFormat.tiff, .bmp, .ico, .svg])
  func `a format that does not tell its end is not judged`(format: ImageFormat) {
    #expect(TruncationScan(format) == nil)
  }

  @Test func `a scan ends for arbitrary bytes`() throws {
    for example in Self.examples {
      for _ in 0..<200 {
        var bytes = example.bytes
        for _ in 0..<5 { bytes[.random(in: 0..<bytes.count)] = .random(in: 0...255) }
        let isCut = try isCut(bytes, example.format) { bytes.count }
        #expect(try self.isCut(bytes, example.format) { .random(in: 1...9) } == isCut)
      }
    }
  }
}
