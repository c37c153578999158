import Testing

@testable import ImageCodec

struct Sample: Sendable, CustomTestStringConvertible {
  var name: String
  var format: ImageFormat
  var bytes: [UInt8]
  var width: Int?
  var height: Int?
  var frames = 1
  var orientation = 1

  var testDescription: String { name }

  init(
    _ name: String, _ format: ImageFormat, _ bytes: [UInt8], _ width: Int?, _ height: Int?, frames: Int = 1,
    orientation: Int = 1
  ) {
    (self.name, self.format, self.bytes, self.width, self.height) = (name, format, bytes, width, height)
    (self.frames, self.orientation) = (frames, orientation)
  }

  private static let heic = Build.ftyp("heic", "mif1", "heic")
  private static let avif = Build.ftyp("avif", "mif1", "miaf")
  private static let large = [UInt8](repeating: 0xFF, count: 60_000)

  static let all: [Sample] = [
    Sample("JPEG", .jpeg, Build.jpeg(640, 480), 640, 480),
    Sample("progressive JPEG", .jpeg, Build.jpeg(65_535, 1, frame: 0xC2), 65_535, 1),
    Sample("lossless JPEG", .jpeg, Build.jpeg(3, 4, frame: 0xCF), 3, 4),
    Sample("JPEG with EXIF", .jpeg, Build.jpeg(3, 4, before: Build.jpegEXIF(6)), 3, 4, orientation: 6),
    Sample(
      "JPEG with big-endian EXIF", .jpeg, Build.jpeg(3, 4, before: Build.jpegEXIF(8, isLittleEndian: false)), 3, 4,
      orientation: 8),
    Sample("JPEG with impossible orientation", .jpeg, Build.jpeg(3, 4, before: Build.jpegEXIF(9)), 3, 4),
    Sample(
      "JPEG with XMP before EXIF and long profiles", .jpeg,
      Build.jpeg(
        3, 4,
        before: Build.segment(0xE1, Build.text("http://ns.adobe.com/xap/1.0/")) + Build.segment(0xE2, large)
          + Build.segment(0xE2, large) + Build.jpegEXIF(3)), 3, 4, orientation: 3),
    Sample("JPEG with fill bytes", .jpeg, Build.jpeg(3, 4, before: [0xFF, 0xFF, 0xFF, 0xFE, 0, 2, 7, 7]), 3, 4),
    Sample("PNG", .png, Build.png(640, 480), 640, 480),
    Sample("largest PNG", .png, Build.png(Int(Int32.max), 1), Int(Int32.max), 1),
    Sample(
      "APNG", .png, APNGTests.Animation(frames: [.init(color: [1, 2, 3, 4]), .init(color: [1, 2, 3, 4])]).file, 8, 8,
      frames: 2),
    Sample(
      "PNG that says it has frames", .png,
      Build.png(3, 4, extra: Build.chunk("gAMA", [0, 0, 0, 1]) + Build.chunk("acTL", Build.big32(5) + Build.big32(0))),
      3, 4),
    Sample("PNG with eXIf", .png, Build.png(3, 4, extra: Build.chunk("eXIf", Build.exif(5))), 3, 4, orientation: 5),
    Sample("GIF", .gif, Build.gif(640, 480, frames: 1), 640, 480),
    Sample("animated GIF", .gif, Build.gif(3, 4, frames: 300, colors: 7), 3, 4, frames: 300),
    Sample("GIF without a screen", .gif, Build.gif(0, 0, frames: 2, frameSize: (7, 9)), 7, 9, frames: 2),
    Sample("lossy WebP", .webp, Build.webpLossy(640, 480), 640, 480),
    Sample("lossless WebP", .webp, Build.webpLossless(16_384, 1), 16_384, 1),
    Sample("extended WebP", .webp, Build.webpExtended(1 << 24, 1), 1 << 24, 1),
    Sample("animated WebP", .webp, Build.webpExtended(3, 4, frames: 12), 3, 4, frames: 12),
    Sample("WebP with EXIF", .webp, Build.webpExtended(3, 4, exif: Build.exif(7)), 3, 4, orientation: 7),
    Sample(
      "WebP with EXIF as in JPEG", .webp, Build.webpExtended(3, 4, exif: EXIF.mark + Build.exif(7)), 3, 4,
      orientation: 7),
    Sample(
      "JPEG with EXIF behind the frame's header", .jpeg,
      Array(Build.jpeg(640, 480).prefix(21)) + Build.jpegEXIF(6) + Array(Build.jpeg(640, 480).dropFirst(21)), 640, 480,
      orientation: 6),
    Sample("HEIC", .heic, Build.heif(heic, properties: [Build.ispe(640, 480)]), 640, 480),
    Sample("AVIF", .avif, Build.heif(avif, properties: [Build.ispe(640, 480)], isLong: true), 640, 480),
    Sample(
      "turned HEIC", .heic, Build.heif(heic, properties: [Build.ispe(3, 4), Build.box("irot", [3])]), 3, 4,
      orientation: 6),
    Sample(
      "cropped AVIF", .avif,
      Build.heif(
        avif,
        properties: [
          Build.ispe(64, 64), Build.box("clap", [50, 1, 40, 2, 0, 1, 0, 1].flatMap { Build.big32($0) }),
        ]), 50, 20),
    Sample(
      "AVIF sequence", .avif,
      Build.heif(
        Build.ftyp("avis", "avif", "mif1"), properties: [Build.ispe(3, 4)], after: Build.movie(3, 4, frames: 9)), 3, 4,
      frames: 9),
    Sample(
      "HEIC sequence without an item", .heic, Build.ftyp("hevc", "msf1") + Build.movie(30, 40, frames: 8), 30, 40,
      frames: 8),
    Sample("small JPEG XL", .jxl, Build.jxl([(1, 1), (3, 5), (0, 3), (1, 5), (1, 1)]), 16, 32),
    Sample("JPEG XL by ratio", .jxl, Build.jxl([(0, 1), (1, 2), (1079, 13), (5, 3), (1, 1)]), 1920, 1080),
    Sample(
      "turned JPEG XL", .jxl,
      Build.jxl([(0, 1), (0, 2), (9, 9), (0, 3), (3, 2), ((1 << 30) - 1, 30), (0, 1), (1, 1), (5, 3)]), 1 << 30, 10,
      orientation: 6),
    Sample(
      "JPEG XL in its container", .jxl,
      Build.jxlContainer(Build.box("jxlc", Build.jxl([(1, 1), (0, 5), (1, 3), (1, 1)]))), 8, 8),
    Sample(
      "JPEG XL in parts", .jxl,
      Build.jxlContainer(
        Build.box("Exif", Build.big32(0) + Build.exif(3))
          + Build.box("jxlp", Build.big32(0) + Build.jxl([(1, 1), (0, 5), (7, 3), (1, 1)]))), 16, 8),
    Sample("TIFF", .tiff, Build.tiff([(256, 3, 640), (257, 3, 480)]), 640, 480),
    Sample(
      "big-endian TIFF", .tiff, Build.tiff([(256, 3, 640), (257, 4, 480), (274, 3, 8)], isLittleEndian: false), 640,
      480,
      orientation: 8),
    Sample("TIFF with pages", .tiff, Build.tiff([(256, 4, 3), (257, 4, 4)], pages: 7), 3, 4, frames: 7),
    Sample("BigTIFF", .tiff, Build.tiff([(256, 3, 3), (257, 4, 4)], big: true, pages: 2), 3, 4, frames: 2),
    Sample("JPEG 2000", .jp2, Build.jp2(Build.siz(640, 480)), 640, 480),
    Sample("JPEG 2000 in its boxes", .jp2, Build.jp2(Build.siz(640, 480), boxed: (640, 480)), 640, 480),
    Sample("minimized AVIF", .avif, Build.minimized([0, 0, 0xD2, 0x80]), 83, 65),
    Sample(
      "minimized turned AVIF", .avif,
      Build.minimized([0, 5, 0x03, 0xE7, 0x07, 0xCE]), 1000, 1000, orientation: 6),
    Sample("BMP", .bmp, Build.bmp(640, 480), 640, 480),
    Sample("BMP from the top", .bmp, Build.bmp(640, -480, header: 124), 640, 480),
    Sample("BMP of OS/2", .bmp, Build.bmp(640, 480, header: 12), 640, 480),
    Sample("BMP as high as can be", .bmp, Build.bmp(1, -2_147_483_648), 1, 2_147_483_648),
    Sample("ICO", .ico, Build.ico([(16, 16), (48, 32), (32, 32)]), 48, 32),
    Sample("ICO of 256", .ico, Build.ico([(16, 16), (0, 0)]), 256, 256),
    Sample("ICO with a PNG", .ico, Build.ico([(0, 0)], pictures: Build.png(512, 500)), 512, 500),
    Sample("SVG", .svg, Build.text("<svg xmlns=\"http://www.w3.org/2000/svg\"/>"), 300, 150),
  ]
}

/// A file that is read in small pieces, never before the requested offset.
private struct SlowFile: ByteSource {
  let content: [UInt8]
  var count: Int { content.count }
  func bytes(at offset: Int, count: Int) -> ArraySlice<UInt8> {
    ArraySlice(Array(content.bytes(at: offset, count: min(count, 61))))
  }
}

@Suite struct `Image headers` {
  @Test(arguments: Sample.all) func `the size is read from the header of every format`(_ sample: Sample) throws {
    #expect(Recognition(prefix: sample.bytes, isComplete: true) == .image(sample.format))
    for source in [sample.bytes, SlowFile(content: sample.bytes)] as [any ByteSource] {
      let header = try ImageHeader.read(source, format: sample.format)
      #expect(header.format == sample.format)
      #expect(header.width == sample.width && header.height == sample.height)
      #expect(header.frames == sample.frames)
      #expect(header.orientation == sample.orientation)
    }
  }

  @Test(arguments: Sample.all) func `a truncated header gives an error or the correct values`(_ sample: Sample) {
    var cut = 0
    for length in stride(from: 0, to: sample.bytes.count, by: max(1, sample.bytes.count / 500)) {
      do throws(ImageHeaderError) {
        let header = try ImageHeader.read(Array(sample.bytes.prefix(length)), format: sample.format)
        #expect(header.width == sample.width && header.height == sample.height)
      } catch {
        cut += 1
      }
    }
    #expect(cut > 0 || sample.format == .svg)
  }

  private static let heic = Build.ftyp("heic", "mif1")

  static let impossible: [(format: ImageFormat, bytes: [UInt8])] = [
    (.jpeg, Build.jpeg(0, 4)), (.jpeg, Build.jpeg(4, 0)), (.jpeg, [0xFF, 0xD8, 0xFF, 0xD9, 0, 0]),
    (.jpeg, [0xFF, 0xD8] + Build.segment(0xDA, [0])), (.jpeg, [0xFF, 0xD8, 0xFF, 0xE0, 0, 1, 0, 0]),
    (.png, Build.png(0, 4)), (.png, Build.png(4, 1 << 31)),
    (.png, Build.png(4, 4, depth: 3)),
    (.png, Build.png(4, 4, color: 1)), (.png, Build.png(4, 4).enumerated().map { $0 == 19 ? 9 : $1 }),
    (.png, Array(Build.png(4, 4).prefix(8)) + Build.chunk("IDAT", [UInt8](repeating: 0, count: 40))),
    (.gif, Build.gif(0, 0, frames: 0)), (.gif, Build.gif(0, 0, frames: 1, frameSize: (0, 0))),
    (.webp, Build.webpLossy(0, 4)), (.webp, Build.riff(Build.webpChunk("VP8 ", [1, 0, 0, 0x9D, 1, 0x2A, 1, 0, 1, 0]))),
    (.webp, Build.riff(Build.webpChunk("VP8L", [0x2E, 0, 0, 0, 0]))), (.webp, Build.riff(Build.webpChunk("XXXX", [0]))),
    (.heic, heic), (.heic, Build.heif(heic, properties: [])), (.heic, Build.heif(heic, properties: [Build.ispe(0, 4)])),
    (.heic, heic + Build.box("meta", Build.big32(0))), (.heic, heic + [0, 0, 0, 7, 0, 0, 0, 0]),
    (.jxl, Build.jxlContainer([])), (.jxl, Build.jxlContainer(Build.box("jxlc", [1, 2, 3]))),
    (.tiff, Build.tiff([(256, 3, 4)])), (.tiff, Build.tiff([(256, 3, 0), (257, 3, 4)])),
    (.tiff, Build.tiff([(256, 5, 4), (257, 3, 4)])),
    (.tiff, [0x49, 0x49, 43, 0, 8, 0, 0, 0] + [UInt8](repeating: 255, count: 20)),
    (.bmp, Build.bmp(0, 4)), (.bmp, Build.bmp(-4, 4)), (.bmp, Build.bmp(4, 0)), (.ico, [0, 0, 1, 0, 0, 0]),
  ]

  @Test(arguments: impossible) func `an impossible header is an error`(format: ImageFormat, bytes: [UInt8]) {
    let error = #expect(throws: ImageHeaderError.self) { try ImageHeader.read(bytes, format: format) }
    #expect(error?.description.isEmpty == false)
  }

  @Test func `a TIFF with a cycle of pages has the number of distinct pages`() throws {
    var file = Build.tiff([(256, 3, 3), (257, 3, 4)], pages: 3)
    file.replaceSubrange((file.count - 4)..., with: Build.little32(8))
    #expect(try ImageHeader.read(file, format: .tiff).frames == 3)
  }

  /// Counts the bytes that are read.
  private final class CountingSource: ByteSource {
    let bytes: [UInt8]
    private(set) var bytesRead = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var count: Int { bytes.count }

    func bytes(at offset: Int, count: Int) -> ArraySlice<UInt8> {
      bytesRead += count
      return bytes.bytes(at: offset, count: count)
    }
  }

  @Test(arguments: [ImageFormat.jpeg, .png, .webp])
  func `only one of many EXIF directories is parsed`(format: ImageFormat) throws {
    // A directory at any offset of this data has 0xEEEE entries, none of which is the orientation.
    let copies = 500
    let entries = [UInt8](repeating: 0xEE, count: 0xEEEE * 12 + 100_000)
    func exif(at offset: Int) -> [UInt8] { Build.text("II") + Build.little16(42) + Build.little32(offset) }
    func file(_ exif: [UInt8]) -> [UInt8] {
      switch format {
      case .jpeg:
        Build.jpeg(3, 4, before: (0..<copies).flatMap { _ in Build.segment(0xE1, EXIF.mark + exif) })
      case .png: Build.png(3, 4, extra: (0..<copies).flatMap { _ in Build.chunk("eXIf", exif) })
      default: Build.webpExtended(3, 4, exif: exif, copies: copies)
      }
    }
    // Each offset is relative to the start of its own data.
    let source = CountingSource(file(exif(at: file(exif(at: 0)).count)) + entries)
    #expect(try ImageHeader.read(source, format: format).orientation == 1)
    #expect(source.bytesRead < 3 * source.count)
  }

  @Test(arguments: 0..<4, [nil, 0, 1] as [UInt8?]) func `HEIF rotations and mirrorings become EXIF orientations`(
    turns: Int, axis: UInt8?
  ) throws {
    let properties =
      [Build.ispe(2, 3), Build.box("irot", [UInt8(turns)])] + (axis.map { [Build.box("imir", [$0])] } ?? [])
    let header = try ImageHeader.read(
      Build.heif(Self.heic, properties: properties), format: .heic)
    // The picture 0 1 / 2 3 / 4 5, oriented as the file says, must equal the one oriented as EXIF says.
    var shown = [[0, 1], [2, 3], [4, 5]]
    for _ in 0..<turns { shown = Self.turnedLeft(shown) }
    if axis == 0 { shown.reverse() }
    if axis == 1 { shown = shown.map { $0.reversed() } }
    #expect(Self.upright([[0, 1], [2, 3], [4, 5]], orientation: header.orientation) == shown)
  }

  private static func turnedLeft(_ rows: [[Int]]) -> [[Int]] {
    (0..<rows[0].count).reversed().map { column in rows.map { $0[column] } }
  }

  /// The EXIF standard's wording: the visual position of the file's 0th row and 0th column.
  private static func upright(_ rows: [[Int]], orientation: Int) -> [[Int]] {
    let transposed = (0..<rows[0].count).map { column in rows.map { $0[column] } }
    let mirrored = { (rows: [[Int]]) in rows.map { Array($0.reversed()) } }
    return switch orientation {
    case 1: rows  // top, left
    case 2: mirrored(rows)  // top, right
    case 3: mirrored(rows.reversed())  // bottom, right
    case 4: rows.reversed()  // bottom, left
    case 5: transposed  // left, top
    case 6: mirrored(transposed)  // right, top
    case 7: mirrored(transposed.reversed())  // right, bottom
    default: transposed.reversed()  // left, bottom
    }
  }
}
