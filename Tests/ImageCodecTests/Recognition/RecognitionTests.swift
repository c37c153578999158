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
