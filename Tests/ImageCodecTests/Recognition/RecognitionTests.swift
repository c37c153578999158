import ImageCodec
import Testing

@Suite struct `Recognition by first bytes` {
  @Test(arguments: Sample.all) func `any prefix is either enough or asks for more`(_ sample: Sample) {
    for length in 0..<min(sample.bytes.count, 300) {
      let recognition = Recognition(prefix: sample.bytes.prefix(length), isComplete: false)
      #expect(recognition == .needMore || recognition == .image(sample.format))
    }
    // A slice that does not begin at 0 must be read from its own start.
    #expect(Recognition(prefix: ([1, 2, 3] + sample.bytes)[3...], isComplete: true) == .image(sample.format))
  }

  static let documents: [(text: String, recognition: Recognition)] = [
    ("<svg>", .image(.svg)), ("<svg/>", .image(.svg)), ("\u{FEFF}\r\n\t <svg\n>", .image(.svg)),
    ("<?xml version=\"1.0\"?><!-- <svg> ? --><!DOCTYPE svg PUBLIC \"a>b\" 'c>'><svg >", .image(.svg)),
    ("<!DOCTYPE svg [ <!ENTITY a \"]>\"> ]>\n<svg:svg xmlns:svg='x'>", .image(.svg)),
    ("<?xml-stylesheet href='a.css'?><svg>", .image(.svg)),
    ("<svgx>", .notAnImage), ("<sv", .needMore), ("<svg", .needMore), ("<!-", .needMore), ("<!-- --", .needMore),
    ("<!DOCTYPE svg [", .needMore), ("<?xml", .needMore), (" ", .needMore), ("", .needMore),
    ("<!DOCTYPE html><html>", .notAnImage), ("<!doctype html>", .notAnImage), ("<html><svg></svg>", .notAnImage),
    ("{\"error\": 404}", .notAnImage), ("GIF90a", .notAnImage), ("BM is no bitmap, but words", .notAnImage),
    ("RIFF....WAVE", .notAnImage), ("\u{0}\u{0}\u{3}\u{0}\u{1}\u{0}", .notAnImage), ("%PDF-1.7", .notAnImage),
    ("<!-- x --><p>", .notAnImage), ("<!x", .notAnImage), ("text <svg>", .notAnImage),
  ]

  @Test(arguments: documents) func `other text is distinguished from drawings`(text: String, recognition: Recognition) {
    #expect(Recognition(prefix: Array(text.utf8), isComplete: false) == recognition)
    if recognition == .needMore { #expect(Recognition(prefix: Array(text.utf8), isComplete: true) == .notAnImage) }
  }

  static let brands: [(bytes: [UInt8], recognition: Recognition)] = [
    (Build.ftyp("mif1", "avif"), .image(.avif)), (Build.ftyp("mif1", "miaf", "heic"), .image(.heic)),
    (Build.ftyp("heic", "avif"), .image(.heic)), (Build.ftyp("avif", "heic"), .image(.avif)),
    (Build.ftyp("isom", "mp41"), .notAnImage), (Build.ftyp("mif1", "miaf"), .notAnImage),
    (Array(Build.ftyp("mif1", "miaf", "heic").dropLast(2)), .needMore),
    ([0, 0, 0, 8] + Build.text("ftypheic    "), .notAnImage),
  ]

  @Test(arguments: brands) func `brands distinguish AVIF, HEIC and videos`(bytes: [UInt8], recognition: Recognition) {
    #expect(Recognition(prefix: bytes, isComplete: false) == recognition)
  }

  static let others: [(bytes: [UInt8], content: ForeignContent?)] = [
    (Build.text("%PDF-1.7\n"), .pdf), (Build.text("%!PS-Adobe-3.0 EPSF-3.0"), .postScript),
    (Build.text("8BPS") + [0, 1], .photoshop), (Build.text("PK\u{3}\u{4}"), .zip), ([0x1F, 0x8B, 8, 0], .gzip),
    (Build.text("7z") + [0xBC, 0xAF, 0x27, 0x1C, 0, 4], .sevenZip), (Build.text("Rar!\u{1A}\u{7}\u{1}"), .rar),
    (Build.text("RIFF....AVI LIST"), .avi), (Build.text("RIFF....WAVEfmt "), .wave),
    (Build.text("ID3\u{4}"), .mpegAudio), (Build.text("OggS"), .ogg),
    ([0x1A, 0x45, 0xDF, 0xA3, 0x9F, 0x42, 0x82, 0x84] + Build.text("webm"), .webm),
    ([0x1A, 0x45, 0xDF, 0xA3, 0xA3, 0x42, 0x82, 0x88] + Build.text("matroska"), .matroska),
    (Build.ftyp("isom", "avc1"), .mp4), (Build.ftyp("qt  "), .quickTime), (Build.ftyp("3gp5"), .threeGP),
    (Build.ftyp("M4A "), .mpeg4Audio), (Build.ftyp("mif1", "miaf"), nil),
    (Build.text("\r\n <!DOCTYPE HTML>"), .html), (Build.text("<html lang='en'>"), .html), (Build.text("<p>x"), .html),
    (Build.text("<?xml version='1.0'?><rss>"), .xml), (Build.text("<?xml version='1.0'?>\n<html xmlns='x'>"), .html),
    (Build.text("\u{FEFF}{ \"error\": 404}"), .json), (Build.text("[{}]"), .json),
    (Build.text("<picture>"), nil), (Build.text("{\\rtf1"), nil), (Build.text("Not found"), nil), ([], nil),
    ([0xFF], nil),
  ]

  @Test(arguments: others) func `other content is told by its name`(bytes: [UInt8], content: ForeignContent?) {
    #expect(Recognition(prefix: bytes, isComplete: true) == .notAnImage)
    #expect(ForeignContent(prefix: ([1, 2] + bytes)[2...]) == content)
  }

  @Test func `an SVG may begin with a comment of 10 kB`() {
    let file = Array("<!--".utf8) + [UInt8](repeating: 0x20, count: 10_000) + Array("--><svg>".utf8)
    #expect(Recognition(prefix: file, isComplete: false) == .image(.svg))
  }

  @Test func `16 kB are always enough for an answer`() {
    let comment = Array("<!--".utf8) + [UInt8](repeating: 0x20, count: 16_380)
    #expect(Recognition(prefix: comment, isComplete: false) == .notAnImage)
    #expect(Recognition(prefix: comment.dropLast(), isComplete: false) == .needMore)
  }

  @Test func `names follow the registered media types`() {
    #expect(
      ImageFormat.allCases.map(\.fileExtension) == [
        "jpg", "png", "gif", "webp", "avif", "heic", "jxl", "jp2", "tiff", "bmp", "ico", "svg",
      ])
    #expect(ImageFormat.svg.mediaType == "image/svg+xml" && ImageFormat.ico.mediaType == "image/vnd.microsoft.icon")
    #expect(ImageFormat.jpeg.mediaType == "image/jpeg")
  }
}
