import ImageCodec

/// Builds headers of every format field by field, so that the tests need no image files.
enum Build {
  static func big16(_ number: Int) -> [UInt8] { [UInt8(number >> 8 & 255), UInt8(number & 255)] }
  static func big32(_ number: Int) -> [UInt8] { big16(number >> 16) + big16(number) }
  static func little16(_ number: Int) -> [UInt8] { big16(number).reversed() }
  static func little32(_ number: Int) -> [UInt8] { big32(number).reversed() }
  static func little24(_ number: Int) -> [UInt8] { Array(little32(number).prefix(3)) }
  static func text(_ text: String) -> [UInt8] { Array(text.utf8) }

  // MARK: TIFF and EXIF

  /// `tags` are tag, type (3 or 4) and value; `pages` is the number of consecutive directories with the same tags.
  static func tiff(
    _ tags: [(tag: Int, type: Int, value: Int)], big: Bool = false, isLittleEndian: Bool = true, pages: Int = 1
  )
    -> [UInt8]
  {
    func integer(_ number: Int, _ bytes: Int) -> [UInt8] {
      let digits = (0..<bytes).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
      return isLittleEndian ? digits : digits.reversed()
    }
    var file = text(isLittleEndian ? "II" : "MM") + integer(big ? 43 : 42, 2)
    if big { file += integer(8, 2) + integer(0, 2) }
    file += integer(big ? 16 : 8, big ? 8 : 4)
    for page in 1...pages {
      file += integer(tags.count, big ? 8 : 2)
      for entry in tags {
        let size = entry.type == 3 ? 2 : 4
        let padding = (big ? 8 : 4) - size
        file += integer(entry.tag, 2) + integer(entry.type, 2) + integer(1, big ? 8 : 4)
        file += integer(entry.value, size) + [UInt8](repeating: 0, count: padding)
      }
      let width = big ? 8 : 4
      file += integer(page == pages ? 0 : file.count + width, width)
    }
    return file
  }

  static func exif(_ orientation: Int, isLittleEndian: Bool = true) -> [UInt8] {
    tiff([(271, 4, 7), (274, 3, orientation)], isLittleEndian: isLittleEndian)
  }

  // MARK: JPEG

  static func segment(_ marker: UInt8, _ content: [UInt8]) -> [UInt8] {
    [0xFF, marker] + big16(content.count + 2) + content
  }

  static func jpeg(_ width: Int, _ height: Int, frame: UInt8 = 0xC0, before: [UInt8] = []) -> [UInt8] {
    [0xFF, 0xD8] + before + segment(0xC4, [0, 1])
      + segment(frame, [8] + big16(height) + big16(width) + [1, 1, 0x11, 0])
      + segment(0xDA, [1, 1, 0, 0, 63, 0]) + [0x12, 0x34, 0xFF, 0xD9]
  }

  static func jpegEXIF(_ orientation: Int, isLittleEndian: Bool = true) -> [UInt8] {
    segment(0xE1, text("Exif\0\0") + exif(orientation, isLittleEndian: isLittleEndian))
  }

  // MARK: PNG

  static func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
    var remainder = UInt32.max
    for byte in text(name) + content {
      remainder ^= UInt32(byte)
      for _ in 0..<8 { remainder = remainder & 1 == 1 ? remainder >> 1 ^ 0xEDB8_8320 : remainder >> 1 }
    }
    return big32(content.count) + text(name) + content + big32(Int(~remainder))
  }

  static func png(_ width: Int, _ height: Int, depth: UInt8 = 8, color: UInt8 = 2, extra: [UInt8] = []) -> [UInt8] {
    [0x89] + text("PNG\r\n\u{1A}\n") + chunk("IHDR", big32(width) + big32(height) + [depth, color, 0, 0, 0]) + extra
      + chunk("IDAT", [1, 2, 3]) + chunk("IEND", [])
  }

  // MARK: GIF

  static func gif(_ width: Int, _ height: Int, frames: Int, frameSize: (Int, Int) = (1, 1), colors: Int = 1) -> [UInt8]
  {
    let table = [UInt8](repeating: 0x2C, count: 3 << (colors + 1))
    var file = text("GIF89a") + little16(width) + little16(height) + [0x80 | UInt8(colors), 0, 0] + table
    file += [0x21, 0xFF, 11] + text("NETSCAPE2.0") + [3, 1, 0, 0, 0]
    for index in 0..<frames {
      file += [0x21, 0xF9, 4, 0, 1, 0, 0, 0]
      file += [0x2C, 0, 0, 0, 0] + little16(frameSize.0) + little16(frameSize.1)
      file += index % 2 == 0 ? [0] : [0x80 | UInt8(colors)] + table
      file += [2, 3, 0x2C, 0x3B, 0x21, 2, 0x2C, 0x3B, 0]
    }
    return file + [0x3B]
  }

  // MARK: WebP

  static func riff(_ chunks: [UInt8]) -> [UInt8] { text("RIFF") + little32(chunks.count + 4) + text("WEBP") + chunks }

  static func webpChunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
    text(name) + little32(content.count) + content + (content.count % 2 == 1 ? [0] : [])
  }

  static func webpLossy(_ width: Int, _ height: Int) -> [UInt8] {
    riff(webpChunk("VP8 ", [0x10, 2, 0, 0x9D, 0x01, 0x2A] + little16(width) + little16(height | 0x4000) + [0, 0]))
  }

  static func webpLossless(_ width: Int, _ height: Int) -> [UInt8] {
    riff(webpChunk("VP8L", [0x2F] + little32(width - 1 | (height - 1) << 14 | 1 << 28) + [0, 0]))
  }

  static func webpExtended(_ width: Int, _ height: Int, frames: Int = 0, exif: [UInt8]? = nil, copies: Int = 1)
    -> [UInt8]
  {
    let flags = UInt8((frames > 0 ? 2 : 0) | (exif == nil ? 0 : 8))
    var chunks = webpChunk("VP8X", [flags, 0, 0, 0] + little24(width - 1) + little24(height - 1))
    for _ in 0..<frames { chunks += webpChunk("ANMF", [UInt8](repeating: 0, count: 25)) }
    if frames == 0 { chunks += webpChunk("VP8L", [0x2F, 0, 0, 0, 0]) }
    if let exif { for _ in 0..<copies { chunks += webpChunk("EXIF", exif) } }
    return riff(chunks)
  }

  // MARK: AVIF, HEIC, JPEG XL

  static func box(_ name: String, _ content: [UInt8]) -> [UInt8] { big32(content.count + 8) + text(name) + content }

  static func ftyp(_ brands: String...) -> [UInt8] {
    box("ftyp", text(brands[0]) + big32(0) + brands.dropFirst().flatMap(text))
  }

  static func ispe(_ width: Int, _ height: Int) -> [UInt8] { box("ispe", big32(0) + big32(width) + big32(height)) }

  /// The primary item is number 2. Item 1 has a property that must not be used for it.
  static func heif(_ fileType: [UInt8], properties: [[UInt8]], isLong: Bool = false, after: [UInt8] = []) -> [UInt8] {
    let thumbnail = ispe(16, 16)
    let number = { (item: Int) in isLong ? big32(item) : big16(item) }
    let index = { (index: Int) in isLong ? big16(0x8000 | index) : [UInt8(0x80 | index)] }
    let associations =
      number(1) + [1] + index(1) + number(2) + [UInt8(properties.count)]
      + (0..<properties.count).flatMap { index($0 + 2) }
    let ipma = box("ipma", [isLong ? 1 : 0, 0, 0, isLong ? 1 : 0] + big32(2) + associations)
    let pitm = box("pitm", [isLong ? 1 : 0, 0, 0, 0] + number(2))
    let meta = box(
      "meta",
      big32(0) + box("hdlr", big32(0) + big32(0) + text("pict") + big32(0)) + pitm
        + box("iprp", box("ipco", thumbnail + properties.flatMap { $0 }) + ipma))
    return fileType + meta + after + box("mdat", [1, 2, 3, 4])
  }

  static func movie(_ width: Int, _ height: Int, frames: Int) -> [UInt8] {
    let tkhd = box("tkhd", [UInt8](repeating: 0, count: 76) + big16(width) + big16(0) + big16(height) + big16(0))
    let handler = box("hdlr", big32(0) + big32(0) + text("pict") + big32(0))
    let sizes = box("stsz", big32(0) + big32(7) + big32(frames))
    let sound = box("trak", tkhd + box("mdia", box("hdlr", big32(0) + big32(0) + text("soun"))))
    let pictures = box("trak", tkhd + box("mdia", handler + box("minf", box("stbl", sizes))))
    return box("moov", sound + pictures)
  }

  /// `bits` are value and number of bits, as in JPEG XL.
  static func jxl(_ bits: [(value: Int, count: Int)]) -> [UInt8] {
    var flat: [Bool] = []
    for field in bits { flat += (0..<field.count).map { field.value >> $0 & 1 == 1 } }
    var bytes = [UInt8](repeating: 0, count: (flat.count + 7) / 8 + 4)
    for (index, bit) in flat.enumerated() where bit { bytes[index / 8] |= 1 << UInt8(index % 8) }
    return [0xFF, 0x0A] + bytes
  }

  static func jxlContainer(_ boxes: [UInt8]) -> [UInt8] {
    box("JXL ", [0x0D, 0x0A, 0x87, 0x0A]) + ftyp("jxl ", "jxl ") + boxes
  }

  static func minimized(_ content: [UInt8]) -> [UInt8] {
    box("ftyp", text("mif3avif")) + box("mini", content + [UInt8](repeating: 0, count: 8))
  }

  // MARK: JPEG 2000

  static func siz(_ width: Int, _ height: Int) -> [UInt8] {
    [0xFF, 0x4F, 0xFF, 0x51, 0, 41, 0, 0] + big32(width + 3) + big32(height + 5) + big32(3) + big32(5)
      + [UInt8](repeating: 0, count: 20)
  }

  static func jp2(_ codestream: [UInt8], boxed size: (width: Int, height: Int)? = nil) -> [UInt8] {
    guard let size else { return codestream }
    let header = box("ihdr", big32(size.height) + big32(size.width) + [0, 3, 7, 7, 0, 0])
    return box("jP  ", [0x0D, 0x0A, 0x87, 0x0A]) + ftyp("jp2 ", "jp2 ") + box("jp2h", header) + box("jp2c", codestream)
  }

  // MARK: BMP, ICO

  static func bmp(_ width: Int, _ height: Int, header: Int = 40) -> [UInt8] {
    let size = header == 12 ? little16(width) + little16(height) : little32(width) + little32(height)
    return text("BM") + little32(100) + little32(0) + little32(26) + little32(header) + size
      + [UInt8](repeating: 0, count: header - 4 - size.count)
  }

  static func ico(_ sizes: [(Int, Int)], pictures: [UInt8] = [1, 2, 3, 4]) -> [UInt8] {
    let start = 6 + 16 * sizes.count
    let directory: [UInt8] = sizes.flatMap { (size: (Int, Int)) -> [UInt8] in
      [UInt8(size.0), UInt8(size.1), 0, 0, 1, 0, 32, 0] + little32(pictures.count) + little32(start)
    }
    return [0, 0, 1, 0] + little16(sizes.count) + directory + pictures
  }
}
