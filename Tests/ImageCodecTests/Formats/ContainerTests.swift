import CZlib
import Foundation
import Testing

@testable import ImageCodec

/// Facts that the structure of a file tells.
struct ContainerTests {
  struct Case: Sendable, CustomTestStringConvertible {
    let name: String
    let format: ImageFormat
    let bytes: [UInt8]
    let facts: ContainerFacts

    var testDescription: String { name }

    init(_ name: String, _ format: ImageFormat, _ bytes: [UInt8], _ facts: ContainerFacts) {
      (self.name, self.format, self.bytes, self.facts) = (name, format, bytes, facts)
    }
  }

  private static func facts(
    _ hasAlpha: Bool?, _ colorSpace: String?, _ bitDepth: Int?, gps: Bool? = false, c2pa: Bool? = false
  ) -> ContainerFacts {
    ContainerFacts(hasAlpha: hasAlpha, colorSpace: colorSpace, bitDepth: bitDepth, hasGPS: gps, c2pa: c2pa)
  }

  // MARK: - Parts of files

  private static let manifestType = Build.text("c2pa") + [0, 0x11, 0, 0x10, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71]
  private static let description = Build.box("jumd", manifestType + [3] + Build.text("c2pa\0"))
  private static let manifest = Build.box("jumb", description + Build.box("cbor", [0xA0]))
  private static let otherBox = Build.box("jumb", Build.box("jumd", [UInt8](repeating: 7, count: 16) + [0]))
  private static let app11 = Build.text("JP") + Build.big16(1) + Build.big32(1)
  private static let xmp = Build.text(#"<rdf:Description exif:GPSLatitude="33,51.59S"/>"#)
  private static let plainXMP = Build.text(#"<rdf:Description dc:format="image/png"/>"#)
  private static let xmpMark = Build.text("http://ns.adobe.com/xap/1.0/\0")

  private static func extendedXMP(_ part: [UInt8]) -> [UInt8] {
    let mark = Build.text("http://ns.adobe.com/xmp/extension/\0") + [UInt8](repeating: 65, count: 32)
    return Build.segment(0xE1, mark + Build.big32(47) + Build.big32(0) + part)
  }

  /// EXIF data with the directory of a position, which has an entry of one tag.
  private static func exif(_ tag: Int? = 2) -> [UInt8] {
    let main = Build.text("MM") + Build.big16(42) + Build.big32(8) + Build.big16(tag == nil ? 0 : 1)
    guard let tag else { return main + Build.big32(0) }
    let pointer = Build.big16(34_853) + Build.big16(4) + Build.big32(1) + Build.big32(26)
    let entry = Build.big16(1) + Build.big16(tag) + Build.big16(2) + Build.big32(2) + Build.text("N\0\0\0")
    return main + pointer + Build.big32(0) + entry + Build.big32(0)
  }

  private static func named(_ name: String, _ space: String = "RGB ", isOld: Bool = false) -> [UInt8] {
    let units = name.utf16.flatMap { Build.big16(Int($0)) }
    let new =
      Build.text("mluc") + Build.big32(0) + Build.big32(1) + Build.big32(12) + Build.text("enUS")
      + Build.big32(units.count) + Build.big32(28) + units
    let old = Build.text("desc") + Build.big32(0) + Build.big32(name.utf8.count + 1) + Build.text(name) + [0]
    return Build.profile(space, [("desc", isOld ? old : new)])
  }

  private static func zlib(_ bytes: [UInt8]) -> [UInt8] {
    var count = compressBound(uLong(bytes.count))
    var result = [UInt8](repeating: 0, count: Int(count))
    compress(&result, &count, bytes, uLong(bytes.count))
    return Array(result.prefix(Int(count)))
  }

  private static func iccp(_ profile: [UInt8]) -> [UInt8] {
    Build.chunk("iCCP", Build.text("name\0\0") + zlib(profile))
  }

  private static func jpegProfile(_ parts: [[UInt8]], total: Int) -> [UInt8] {
    parts.enumerated().flatMap { index, part in
      Build.segment(0xE2, Build.text("ICC_PROFILE\0") + [UInt8(index + 1), UInt8(total)] + part)
    }
  }

  private static func jpeg(components: Int, depth: UInt8 = 8, _ before: [UInt8] = []) -> [UInt8] {
    [0xFF, 0xD8] + before
      + Build.segment(0xC0, [depth] + Build.big16(4) + Build.big16(5) + [UInt8(components)])
      + Build.segment(0xDA, [1, 1, 0, 0, 63, 0]) + [0x12, 0xFF, 0xD9]
  }

  private static func xmpText(_ text: [UInt8], isCompressed: Bool = false) -> [UInt8] {
    Build.chunk("iTXt", Build.text("XML:com.adobe.xmp\0") + [isCompressed ? 1 : 0, 0, 0, 0] + text)
  }

  private static func webp(_ flags: UInt8, _ chunks: [UInt8]) -> [UInt8] {
    Build.riff(Build.webpChunk("VP8X", [flags, 0, 0, 0] + Build.little24(3) + Build.little24(3)) + chunks)
  }

  private static let lossy = Build.webpChunk("VP8 ", [0x10, 2, 0, 0x9D, 0x01, 0x2A, 4, 0, 4, 0])

  private static func gif(_ extra: [UInt8]) -> [UInt8] {
    var file = Build.gif(20, 20, frames: 1)
    file.insert(contentsOf: extra, at: 13 + 12)
    return file
  }

  /// A frame with a transparent colour, and the trailer.
  private static let secondFrame: [UInt8] =
    [0x21, 0xF9, 4, 1, 0, 0, 3, 0, 0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x4C, 1, 0, 0x3B]

  private static func application(_ name: String, _ content: [UInt8]) -> [UInt8] {
    [0x21, 0xFF, 11] + Build.text(name) + content + [0]
  }

  private static func colr(_ primaries: Int, _ transfer: Int) -> [UInt8] {
    Build.box("colr", Build.text("nclx") + Build.big16(primaries) + Build.big16(transfer) + Build.big16(6) + [0x80])
  }

  private static func pixi(_ bits: [UInt8]) -> [UInt8] {
    Build.box("pixi", Build.big32(0) + [UInt8(bits.count)] + bits)
  }

  /// An image with the items 2 (primary), 3 (an auxiliary image), 4 (EXIF) and 5 (XMP); metadata is in `idat`.
  private static func heif(
    _ properties: [[UInt8]], auxiliary: String? = nil, exif: [UInt8]? = nil, xmp: [UInt8]? = nil, encoding: String = "",
    extents: Int = 1, after: [UInt8] = []
  ) -> [UInt8] {
    let auxC = Build.box("auxC", Build.big32(0) + Build.text((auxiliary ?? "none") + "\0"))
    let count = properties.count
    let ipma = Build.box(
      "ipma",
      Build.big32(0) + Build.big32(2) + Build.big16(2) + [UInt8(count)] + (0..<count).map { UInt8($0 + 1) }
        + Build.big16(3) + [1, UInt8(count + 1)])
    let iprp = Build.box("iprp", Build.box("ipco", properties.flatMap { $0 } + auxC) + ipma)
    let reference = Build.box("auxl", Build.big16(3) + Build.big16(1) + Build.big16(2))
    let iref = auxiliary == nil ? [] : Build.box("iref", Build.big32(0) + reference)
    let exifItem = exif.map { Build.big32(6) + Build.text("Exif\0\0") + $0 } ?? []
    func entry(_ id: Int, _ type: String, _ rest: String) -> [UInt8] {
      Build.box("infe", [2, 0, 0, 0] + Build.big16(id) + Build.big16(0) + Build.text(type + rest))
    }
    var (entries, places, items): ([UInt8], [UInt8], Int) = ([], [], 0)
    for (id, content, start, entry) in [
      (4, exif.map { _ in exifItem }, 0, entry(4, "Exif", "\0")),
      (5, xmp, exifItem.count, entry(5, "mime", "\0application/rdf+xml\0" + (encoding.isEmpty ? "" : encoding + "\0"))),
    ] {
      guard let content else { continue }
      (entries, items) = (entries + entry, items + 1)
      let extent = Build.big32(start) + Build.big32(content.count)
      places += Build.big16(id) + Build.big16(1) + Build.big16(0) + Build.big16(extents)
      for _ in 0..<extents { places += extent }
    }
    let iinf = Build.box("iinf", Build.big32(0) + Build.big16(items) + entries)
    let iloc = Build.box("iloc", [1, 0, 0, 0, 0x44, 0] + Build.big16(items) + places)
    let idat = Build.box("idat", exifItem + (xmp ?? []))
    let pitm = Build.box("pitm", Build.big32(0) + Build.big16(2))
    return Build.ftyp("heic", "mif1") + Build.box("meta", Build.big32(0) + pitm + iinf + iloc + iref + iprp + idat)
      + Build.box("mdat", [1, 2, 3, 4]) + after
  }

  private static func uuid(_ purpose: String) -> [UInt8] {
    let type: [UInt8] = [
      0xD8, 0xFE, 0xC3, 0xD6, 0x1B, 0x0E, 0x48, 0x3C, 0x92, 0x97, 0x58, 0x28, 0x87, 0x7E, 0xC4, 0x81,
    ]
    return Build.box("uuid", type + Build.big32(0) + Build.text(purpose + "\0") + [UInt8](repeating: 0, count: 8))
  }

  private static func tiff(_ tags: [(Int, Int, Int)]) -> [UInt8] {
    Build.tiff(([(256, 4, 5), (257, 4, 4)] + tags).map { (tag: $0.0, type: $0.1, value: $0.2) })
  }

  /// A V5 bitmap of 32 bits.
  private static func bitmap(alpha: Int, type: Int) -> [UInt8] {
    let start = Build.little32(124) + Build.little32(1) + Build.little32(1) + Build.little16(1) + Build.little16(32)
    let masks = Build.little32(0x3FF0_0000) + Build.little32(0xF_FC00) + Build.little32(0x3FF) + Build.little32(alpha)
    let header = start + Build.little32(3) + [UInt8](repeating: 0, count: 20) + masks + Build.little32(type)
    return Build.text("BM") + Build.little32(142) + Build.little32(0) + Build.little32(138) + header
      + [UInt8](repeating: 0, count: 124 - header.count + 4)
  }

  // MARK: - Cases

  static let cases: [Case] = jpegs + pngs + webps + gifs + heifs + jxls + others

  private static var jpegs: [Case] {
    var cases: [Case] = []
    func add(_ name: String, _ format: ImageFormat, _ bytes: [UInt8], _ facts: ContainerFacts) {
      cases.append(Case(name, format, bytes, facts))
    }
    add("JPEG", .jpeg, jpeg(components: 3), facts(false, "sRGB", 8))
    add("grey JPEG of 12 bits", .jpeg, jpeg(components: 1, depth: 12), facts(false, "gray", 12))
    let second = Build.segment(0xC1, [12] + Build.big16(4) + Build.big16(5) + [1])
    let twoFrames = jpeg(components: 3).dropLast(13) + second + jpeg(components: 3).suffix(13)
    add("JPEG with two frame headers", .jpeg, Array(twoFrames), facts(false, "sRGB", 8))
    add("CMYK JPEG", .jpeg, jpeg(components: 4), facts(false, "CMYK", 8))
    add(
      "JPEG with a profile", .jpeg, jpeg(components: 3, jpegProfile([named("Display P3")], total: 1)),
      facts(false, "Display P3", 8))
    add(
      "JPEG with a profile in two parts", .jpeg,
      jpeg(
        components: 4,
        jpegProfile([Array(named("Größe").prefix(140)), Array(named("Größe").dropFirst(140))], total: 2)),
      facts(false, "Größe", 8))
    add(
      "JPEG with a part of a profile", .jpeg, jpeg(components: 3, jpegProfile([named("A")], total: 2)),
      facts(false, nil, 8))
    add(
      "JPEG with a position", .jpeg, jpeg(components: 3, Build.segment(0xE1, Build.text("Exif\0\0") + exif())),
      facts(false, "sRGB", 8, gps: true))
    add(
      "JPEG with the directory of a position, which has none", .jpeg,
      jpeg(components: 3, Build.segment(0xE1, Build.text("Exif\0\0") + exif(29))), facts(false, "sRGB", 8))
    add(
      "JPEG with damaged EXIF", .jpeg, jpeg(components: 3, Build.segment(0xE1, Build.text("Exif\0\0MM"))),
      facts(false, "sRGB", 8, gps: nil))
    add(
      "JPEG with a position in XMP", .jpeg, jpeg(components: 3, Build.segment(0xE1, xmpMark + xmp)),
      facts(false, "sRGB", 8, gps: true))
    let parts = extendedXMP(Array(xmp.prefix(25))) + extendedXMP(Array(xmp.dropFirst(25)))
    add(
      "JPEG with a position between two parts of XMP", .jpeg, jpeg(components: 3, parts),
      facts(false, "sRGB", 8, gps: true))
    add(
      "JPEG with a manifest", .jpeg, jpeg(components: 3, Build.segment(0xEB, app11 + manifest)),
      facts(false, "sRGB", 8, c2pa: true))
    add(
      "JPEG with a manifest that has a long length", .jpeg,
      jpeg(
        components: 3,
        Build.segment(
          0xEB, app11 + Build.big32(1) + Build.text("jumb") + Build.big32(0) + Build.big32(70_000) + description)),
      facts(false, "sRGB", 8, c2pa: true))
    add(
      "JPEG with another box", .jpeg, jpeg(components: 3, Build.segment(0xEB, app11 + otherBox)),
      facts(false, "sRGB", 8))
    add(
      "JPEG with a manifest in a segment of another kind", .jpeg,
      jpeg(components: 3, Build.segment(0xEA, app11 + manifest)), facts(false, "sRGB", 8))
    add(
      "JPEG with a thumbnail that has a position", .jpeg,
      jpeg(components: 3) + jpeg(components: 3, Build.segment(0xE1, xmpMark + xmp)), facts(false, "sRGB", 8))
    return cases
  }

  private static var pngs: [Case] {
    var cases: [Case] = []
    func add(_ name: String, _ format: ImageFormat, _ bytes: [UInt8], _ facts: ContainerFacts) {
      cases.append(Case(name, format, bytes, facts))
    }
    add("PNG", .png, Build.png(4, 4), facts(false, "sRGB", 8))
    add("PNG of 16 bits with alpha", .png, Build.png(4, 4, depth: 16, color: 6), facts(true, "sRGB", 16))
    add("grey PNG with alpha", .png, Build.png(4, 4, color: 4), facts(true, "gray", 8))
    add("grey PNG of 2 bits", .png, Build.png(4, 4, depth: 2, color: 0), facts(false, "gray", 2))
    add(
      "PNG with a palette that is transparent", .png,
      Build.png(4, 4, depth: 4, color: 3, extra: Build.chunk("PLTE", [1, 2, 3]) + Build.chunk("tRNS", [0])),
      facts(true, "sRGB", 8))
    add(
      "PNG with transparency after its pixels", .png,
      Build.png(4, 4, extra: Build.chunk("IDAT", []) + Build.chunk("tRNS", [0, 0, 0, 0, 0, 0])),
      facts(false, "sRGB", 8))
    add(
      "PNG with a profile", .png, Build.png(4, 4, extra: iccp(named("Adobe RGB (1998)", isOld: true))),
      facts(false, "Adobe RGB (1998)", 8))
    add(
      "PNG with a damaged profile", .png, Build.png(4, 4, extra: Build.chunk("iCCP", Build.text("a\0\0") + [1, 2, 3])),
      facts(false, "sRGB", 8))
    add(
      "PNG with code points before a profile", .png,
      Build.png(4, 4, extra: Build.chunk("cICP", [12, 13, 0, 1]) + iccp(named("other"))),
      facts(false, "Display P3", 8))
    add(
      "PNG in PQ", .png, Build.png(4, 4, depth: 16, extra: Build.chunk("cICP", [9, 16, 0, 1])),
      facts(false, "Rec. 2020", 16))
    add(
      "PNG with the code points of DCI-P3", .png, Build.png(4, 4, extra: Build.chunk("cICP", [11, 17, 0, 1])),
      facts(false, nil, 8))
    add(
      "PNG with a gamma of 1", .png, Build.png(4, 4, extra: Build.chunk("gAMA", Build.big32(100_000))),
      facts(false, nil, 8))
    add(
      "PNG with a gamma and sRGB", .png,
      Build.png(4, 4, extra: Build.chunk("sRGB", [0]) + Build.chunk("gAMA", Build.big32(100_000))),
      facts(false, "sRGB", 8))
    add(
      "PNG with the gamma of sRGB", .png, Build.png(4, 4, extra: Build.chunk("gAMA", Build.big32(45_455))),
      facts(false, "sRGB", 8))
    add(
      "PNG with a position", .png, Build.png(4, 4, extra: Build.chunk("eXIf", exif(4))),
      facts(false, "sRGB", 8, gps: true))
    add(
      "PNG with XMP after its pixels", .png, Build.png(4, 4, extra: Build.chunk("IDAT", []) + xmpText(xmp)),
      facts(false, "sRGB", 8, gps: true))
    add(
      "PNG with compressed XMP", .png, Build.png(4, 4, extra: xmpText(zlib(xmp), isCompressed: true)),
      facts(false, "sRGB", 8, gps: true))
    add(
      "PNG with XMP that cannot be inflated", .png, Build.png(4, 4, extra: xmpText([1, 2], isCompressed: true)),
      facts(false, "sRGB", 8, gps: nil))
    add(
      "PNG with metadata of ImageMagick", .png,
      Build.png(4, 4, extra: Build.chunk("zTXt", Build.text("Raw profile type exif\0") + [0])),
      facts(false, "sRGB", 8, gps: nil))
    add(
      "PNG with a manifest", .png, Build.png(4, 4, extra: Build.chunk("caBX", manifest)),
      facts(false, "sRGB", 8, c2pa: true))
    add("PNG with another box", .png, Build.png(4, 4, extra: Build.chunk("caBX", otherBox)), facts(false, "sRGB", 8))
    add(
      "PNG without its end", .png, Array(Build.png(4, 4, color: 6).dropLast(12)),
      facts(true, nil, 8, gps: nil, c2pa: nil))
    return cases
  }

  private static var webps: [Case] {
    var cases: [Case] = []
    func add(_ name: String, _ format: ImageFormat, _ bytes: [UInt8], _ facts: ContainerFacts) {
      cases.append(Case(name, format, bytes, facts))
    }
    add("WebP", .webp, Build.webpLossy(4, 4), facts(false, "sRGB", 8))
    add("lossless WebP with alpha", .webp, Build.webpLossless(4, 4), facts(true, "sRGB", 8))
    add("WebP with alpha", .webp, webp(0x10, Build.webpChunk("ALPH", [0, 1]) + lossy), facts(true, "sRGB", 8))
    add(
      "WebP with everything", .webp,
      webp(
        0x2C,
        Build.webpChunk("ICCP", named("Wide")) + lossy + Build.webpChunk("EXIF", exif()) + Build.webpChunk("XMP ", [1])
          + Build.webpChunk("C2PA", manifest)), facts(false, "Wide", 8, gps: true, c2pa: true))
    add(
      "WebP with XMP", .webp, webp(4, lossy + Build.webpChunk("XMP ", xmp)), facts(false, "sRGB", 8, gps: true))
    add(
      "WebP that is cut", .webp, Array(webp(4, lossy + Build.webpChunk("XMP ", plainXMP)).dropLast(4)),
      facts(nil, nil, 8, gps: nil, c2pa: nil))
    return cases
  }

  private static var gifs: [Case] {
    var cases: [Case] = []
    func add(_ name: String, _ format: ImageFormat, _ bytes: [UInt8], _ facts: ContainerFacts) {
      cases.append(Case(name, format, bytes, facts))
    }
    add("GIF", .gif, Build.gif(20, 20, frames: 2), facts(false, "sRGB", 8))
    add(
      "GIF with a transparent colour", .gif, Array(Build.gif(20, 20, frames: 1).dropLast()) + secondFrame,
      facts(true, "sRGB", 8))
    add(
      "GIF with XMP", .gif, gif(application("XMP DataXMP", xmp + [1] + (0...255).reversed())),
      facts(false, "sRGB", 8, gps: true))
    add(
      "GIF with a manifest", .gif, gif(application("C2PA_GIF\u{1}\0\0", [UInt8(manifest.count)] + manifest)),
      facts(false, "sRGB", 8, c2pa: true))
    add(
      "GIF with a manifest of another application", .gif,
      gif(application("C2PA_GIF\u{2}\0\0", [UInt8(manifest.count)] + manifest)), facts(false, "sRGB", 8))
    add(
      "GIF without its trailer", .gif, Array(Build.gif(20, 20, frames: 2).dropLast(1)),
      facts(nil, nil, 8, gps: nil, c2pa: nil))
    return cases
  }

  private static let size = Build.ispe(5, 4)
  private static let hevc = Build.box("hvcC", [UInt8](repeating: 0, count: 16) + [0xFD, 0xFA, 0, 0, 0, 0, 0])

  private static var heifs: [Case] {
    var cases: [Case] = []
    func add(_ name: String, _ format: ImageFormat, _ bytes: [UInt8], _ facts: ContainerFacts) {
      cases.append(Case(name, format, bytes, facts))
    }
    add("HEIC", .heic, heif([size, pixi([8, 8, 8]), colr(1, 13)]), facts(false, "sRGB", 8))
    add("HEIC of 10 bits", .heic, heif([size, hevc, colr(12, 13)]), facts(false, "Display P3", 10))
    add("AVIF of 12 bits", .avif, heif([size, Build.box("av1C", [0x81, 0, 0x60, 0])]), facts(false, nil, 12))
    add(
      "grey AVIF", .avif, heif([size, Build.box("av1C", [0x81, 0, 0x10, 0]), colr(1, 13)]), facts(false, "gray", 8))
    add(
      "HEIC with a profile", .heic,
      heif([size, colr(9, 16), Build.box("colr", Build.text("prof") + named("Display P3")), pixi([8, 8, 8])]),
      facts(false, "Display P3", 8))
    add(
      "HEIC with alpha", .heic, heif([size, pixi([8]), colr(1, 13)], auxiliary: "urn:mpeg:hevc:2015:auxid:1"),
      facts(true, "gray", 8))
    add(
      "AVIF with alpha", .avif,
      heif([size, pixi([8, 8, 8]), colr(9, 16)], auxiliary: "urn:mpeg:mpegB:cicp:systems:auxiliary:alpha"),
      facts(true, "Rec. 2020", 8))
    add(
      "HEIC with depth", .heic, heif([size, pixi([8, 8, 8]), colr(2, 2)], auxiliary: "urn:mpeg:hevc:2015:auxid:2"),
      facts(false, "sRGB", 8))
    add("HEIC with a position", .heic, heif([size], exif: exif()), facts(false, nil, nil, gps: true))
    add("HEIC with EXIF", .heic, heif([size], exif: exif(nil), xmp: plainXMP), facts(false, nil, nil))
    add(
      "HEIC with EXIF in two parts", .heic, heif([size], exif: exif(nil), extents: 2),
      facts(false, nil, nil, gps: nil))
    add("HEIC with XMP", .heic, heif([size], exif: exif(nil), xmp: xmp), facts(false, nil, nil, gps: true))
    add(
      "HEIC with compressed XMP", .heic, heif([size], xmp: plainXMP, encoding: "deflate"),
      facts(false, nil, nil, gps: nil))
    add("HEIC with a manifest", .heic, heif([size], after: uuid("manifest")), facts(false, nil, nil, c2pa: true))
    add("HEIC with an auxiliary box", .heic, heif([size], after: uuid("merkle")), facts(false, nil, nil))
    add(
      "HEIC with a box that is cut", .heic, heif([size], after: Build.big32(99) + Build.text("free")),
      facts(nil, nil, nil, gps: nil, c2pa: nil))
    return cases
  }

  /// The start of a codestream of 8 x 8 pixels.
  private static func jxl(_ bits: [(value: Int, count: Int)]) -> [UInt8] {
    Build.jxl([(1, 1), (0, 5), (1, 3)] + bits.map { (value: $0.value, count: $0.count) })
  }

  private static var jxls: [Case] {
    var cases: [Case] = []
    func add(_ name: String, _ format: ImageFormat, _ bytes: [UInt8], _ facts: ContainerFacts) {
      cases.append(Case(name, format, bytes, facts))
    }
    add("JPEG XL", .jxl, jxl([(1, 1)]), facts(false, "sRGB", 8))
    add(
      "grey JPEG XL of 10 bits with alpha", .jxl,
      // No extra fields; integers of 10 bits; 16-bit buffers; one channel of the default kind; not XYB; grey.
      jxl([(0, 1), (0, 1), (0, 1), (1, 2), (1, 1), (1, 2), (1, 1), (0, 1), (0, 1), (0, 1), (1, 2)]),
      facts(true, "gray", 10))
    add(
      "JPEG XL of 16 bits in PQ", .jxl,
      // 6 bits of 15 + 1; no extra channel; RGB, D65, primaries 9 (2 + 7), transfer 16 (2 + 14).
      jxl([
        (0, 1), (0, 1), (0, 1), (3, 2), (15, 6), (1, 1), (0, 2), (0, 1), (0, 1), (0, 1), (0, 2), (1, 2), (2, 2), (7, 4),
        (0, 1), (2, 2), (14, 4),
      ]), facts(false, "Rec. 2020", 16))
    add(
      "JPEG XL with a profile", .jxl,
      jxl([(0, 1), (0, 1), (0, 1), (0, 2), (1, 1), (0, 2), (0, 1), (0, 1), (1, 1), (0, 2)]), facts(false, nil, 8))
    add(
      "JPEG XL with a preview", .jxl, jxl([(0, 1), (1, 1), (0, 3), (0, 1), (1, 1)]), facts(nil, nil, nil))
    add(
      "JPEG XL with metadata", .jxl,
      Build.jxlContainer(
        Build.box("Exif", Build.big32(0) + exif()) + Build.box("jumb", description) + Build.box("jxlc", jxl([(1, 1)]))),
      facts(false, "sRGB", 8, gps: true, c2pa: true))
    add(
      "JPEG XL with compressed metadata", .jxl,
      Build.jxlContainer(Build.box("brob", Build.text("xml ") + [1]) + Build.box("jxlc", jxl([(1, 1)]))),
      facts(false, "sRGB", 8, gps: nil))
    return cases
  }

  private static var others: [Case] {
    var cases: [Case] = []
    func add(_ name: String, _ format: ImageFormat, _ bytes: [UInt8], _ facts: ContainerFacts) {
      cases.append(Case(name, format, bytes, facts))
    }
    add("TIFF", .tiff, tiff([(258, 3, 16), (262, 3, 2), (277, 3, 3)]), facts(false, "sRGB", 16))
    add("TIFF of one bit", .tiff, tiff([(262, 3, 0)]), facts(false, "gray", 1))
    add("CMYK TIFF", .tiff, tiff([(258, 3, 8), (262, 3, 5), (277, 3, 4)]), facts(false, "CMYK", 8))
    add(
      "TIFF with an unnamed sample", .tiff, tiff([(258, 3, 8), (262, 3, 2), (277, 3, 4)]), facts(true, "sRGB", 8))
    add(
      "TIFF with a sample that is not alpha", .tiff, tiff([(258, 3, 8), (262, 3, 2), (277, 3, 4), (338, 3, 0)]),
      facts(false, "sRGB", 8))
    add(
      "TIFF with alpha", .tiff, tiff([(258, 3, 8), (262, 3, 8), (277, 3, 4), (338, 3, 2)]), facts(true, "Lab", 8))
    add("TIFF with a palette", .tiff, tiff([(258, 3, 8), (262, 3, 3)]), facts(false, "sRGB", 16))
    add("TIFF with a position", .tiff, exif(), facts(nil, nil, 1, gps: true))
    add("bitmap", .bmp, Build.bmp(4, 4), facts(false, "sRGB", 8))
    add("bitmap of 10 bits", .bmp, bitmap(alpha: 0, type: 0x7352_4742), facts(false, "sRGB", 10))
    add("bitmap with alpha", .bmp, bitmap(alpha: 0xC000_0000, type: 0), facts(true, nil, 10))
    add("icon of a PNG", .ico, Build.ico([(4, 4)], pictures: Build.png(4, 4, depth: 16)), facts(false, "sRGB", 16))
    add("icon", .ico, Build.ico([(4, 4)], pictures: Array(Build.bmp(4, 8).dropFirst(14))), facts(true, "sRGB", 8))
    add("SVG", .svg, Build.text("<svg xmlns='http://www.w3.org/2000/svg'/>"), facts(nil, nil, nil))
    add(
      "SVG with metadata", .svg,
      Build.text("<svg><metadata><c2pa:manifest>AA==</c2pa:manifest>") + xmp + Build.text("</metadata></svg>"),
      facts(nil, nil, nil, gps: true, c2pa: true))
    return cases
  }

  /// A source whose pieces begin at index 0, as those of a file do.
  private struct Pieces: ByteSource {
    let bytes: [UInt8]
    var count: Int { bytes.count }

    func bytes(at offset: Int, count: Int) -> ArraySlice<UInt8> { Array(bytes.bytes(at: offset, count: count))[...] }
  }

  @Test(arguments: cases) func `a file tells its facts`(file: Case) {
    #expect(ContainerReader.read(file.bytes, file.format) == file.facts)
    #expect(ContainerReader.read(Pieces(bytes: file.bytes), file.format) == file.facts)
  }

  /// A TIFF whose metadata is outside of its directory.
  @Test func `a TIFF tells its metadata, whatever the length of it`() {
    let start = 8 + 2 + 4 * 12 + 4
    let (xmp, profile) = (Build.text(String(repeating: " ", count: 70_000)) + Self.xmp, Self.named("Wide"))
    func entry(_ tag: Int, _ content: [UInt8], _ place: Int) -> [UInt8] {
      Build.little16(tag) + Build.little16(7) + Build.little32(content.count) + Build.little32(place)
    }
    let directory =
      Build.little16(4) + Build.little16(262) + Build.little16(3) + Build.little32(1) + Build.little32(2)
      + entry(700, xmp, start) + entry(34_675, profile, start + xmp.count)
      + entry(52_545, Self.manifest, start + xmp.count + profile.count) + Build.little32(0)
    let file = Build.text("II") + Build.little16(42) + Build.little32(8) + directory + xmp + profile + Self.manifest
    let expected = Self.facts(false, "Wide", 1, gps: true, c2pa: true)
    #expect(ContainerReader.read(file, .tiff) == expected)
    let cut = ContainerReader.read(Array(file.prefix(start + 60_000)), .tiff)
    #expect(cut.hasGPS == nil && cut.c2pa != false)
  }

  @Test func `a decoder tells the facts of files that libraries wrote`() async throws {
    let decoding = try Decoding.shared()
    func told(_ file: [UInt8]) async throws -> ContainerFacts? {
      try await decoding.run(try decoding.task(file, .facts(.container))).get().facts.container
    }
    let colors = { (x: Int, y: Int) in [x, y, 0, 128] }
    let avif = try AVIFBuilder(depth: 10, primaries: 12, exif: Self.exif(), frames: [(0, colors)]).file()
    #expect(try await told(avif) == Self.facts(true, "Display P3", 10, gps: true))
    #expect(try await told(HEIFReferencesTests.photo) == Self.facts(false, nil, 8))
    #expect(try await told(Build.ico([(4, 4)], pictures: Build.png(4, 4, depth: 16))) == Self.facts(false, "sRGB", 16))
    guard await decoding.formats().decode.contains(.jxl) else { return }
    for file in [JXLTests.lossless, JXLTests.lossy] { #expect(try await told(file) == Self.facts(true, "sRGB", 8)) }
  }

  @Test func `facts in a message are read as they were written, and not believed`() throws {
    var decoded = Decoded()
    for facts in [ContainerFacts(), Self.facts(true, "Größe = 1", 64), Self.facts(false, nil, 1, gps: nil, c2pa: true)]
    {
      decoded.facts.container = facts
      var bytes = CodecReply.done(decoded).message.bytes
      #expect(CodecReply(try #require(CodecMessage(takenFrom: &bytes))) == .done(decoded))
    }
    for (name, values) in [
      ("hasAlpha", ["2", "-1", "x", ""]), ("c2pa", ["true"]),
      ("bitDepth", ["0", "65", "8.5", "", "99999999999999999999"]),
      ("colorSpace", ["", "a\u{7}", String(repeating: "a", count: 201), "a\u{202E}b"]),
    ] {
      for value in values {
        var message = CodecReply.done(decoded).message
        message["container.\(name)"] = value
        #expect(CodecReply(message) == nil, "\(name) = \(value)")
      }
    }
  }

  @Test(arguments: ["", "a\nb", String(repeating: "a", count: 201), "a\u{202E}b"])
  func `a profile without a valid name has that of its device`(name: String) {
    for isOld in [false, true] {
      for (space, expected) in [("GRAY", "gray"), ("CMYK", "CMYK"), ("RGB ", nil)] as [(String, String?)] {
        #expect(ProfileName.read(Self.named(name, space, isOld: isOld)) == expected)
      }
    }
    #expect(ProfileName.read([UInt8](repeating: 0xFF, count: 500)) == nil)
  }

  /// The lengths at which a file of boxes has a whole number of boxes, or text, looks complete.
  private static func looksComplete(_ file: Case, _ count: Int) -> Bool {
    var ends: Set<Int> = []
    var position = 0
    while position + 8 <= file.bytes.count {
      let length = file.bytes[position..<(position + 4)].reduce(0) { $0 << 8 | Int($1) }
      guard length >= 8 else { break }
      position += length
      ends.insert(position)
    }
    let isOfBoxes = [.heic, .avif].contains(file.format) || file.format == .jxl && file.bytes[0] == 0
    return isOfBoxes && ends.contains(count) || file.format == .svg
  }

  @Test(arguments: cases) func `the start of a file does not answer otherwise than the file`(file: Case) {
    for count in file.bytes.indices where !Self.looksComplete(file, count) {
      let facts = ContainerReader.read(Array(file.bytes.prefix(count)), file.format)
      func agree<Value: Equatable>(_ path: KeyPath<ContainerFacts, Value?>) -> Bool {
        facts[keyPath: path] == nil || facts[keyPath: path] == file.facts[keyPath: path]
          // The whole file has a part that is not read.
          || file.facts[keyPath: path] == nil && facts[keyPath: path] as? Bool != false
      }
      #expect(
        agree(\.hasAlpha) && agree(\.colorSpace) && agree(\.bitDepth) && agree(\.hasGPS) && agree(\.c2pa),
        "\(count) bytes: \(facts)")
    }
  }
}
