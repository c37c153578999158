internal import CDeflate
package import ImageCodec

/// The file of an image without its metadata: EXIF, XMP, IPTC, comments, and bytes after the image. It can have other
/// EXIF data. The pixels, the colour profile and the animation are copied as they are.
package enum StrippedFile {
  /// Whether the metadata of files of this format can be removed.
  package static func supports(_ format: ImageFormat) -> Bool { [.jpeg, .png, .webp].contains(format) }

  /// - Parameter exif: at most 64,000 bytes; empty for none.
  package static func make(
    _ file: UnsafeRawBufferPointer, _ format: ImageFormat, exif: [UInt8]
  ) throws(DecodeError) -> EncodedFile {
    let bytes: [UInt8]
    switch format {
    case .jpeg: bytes = try jpeg(file, exif)
    case .png: bytes = png(file, exif)
    case .webp: bytes = webp(file, exif)
    default: throw .unsupportedFormat("strip reads JPEG, PNG and WebP, and the image is \(format.rawValue)")
    }
    return try EncodedFile(copying: bytes)
  }

  // MARK: - JPEG (ITU-T T.81 annex B)

  private static func jpeg(_ file: UnsafeRawBufferPointer, _ exif: [UInt8]) throws(DecodeError) -> [UInt8] {
    var result: [UInt8] = [0xFF, 0xD8]
    let content = exif.isEmpty ? [] : Array("Exif\0\0".utf8) + exif
    let length = content.count + 2
    let segment = content.isEmpty ? [] : [0xFF, 0xE1, UInt8(length >> 8), UInt8(length & 255)] + content
    var isFirst = true
    var position = 2
    while let marker = JPEGScreening.nextMarker(in: file, from: &position) {
      if marker == JPEGScreening.endOfImage { return result + [0xFF, 0xD9] }
      // Markers without a segment, or bytes that are not markers.
      if marker <= 0x01 || restarts.contains(marker) || marker == 0xD8 { continue }
      let start = position - 2
      guard file.count - position >= 2 else { break }
      position += max(2, Int(file[position]) << 8 | Int(file[position + 1]))
      if marker == JPEGScreening.startOfScan { position = endOfScan(in: file, from: position) }
      guard position <= file.count else { break }
      // JFIF must be the first segment, and EXIF follows it.
      if isFirst, marker != 0xE0 { result += segment }
      let content = file[(start + 4)..<position]
      switch marker {
      // JFIF without its thumbnail, and Adobe's transform.
      case 0xE0 where content.count >= 14 && content.starts(with: "JFIF\0".utf8):
        result += [0xFF, marker, 0, 16] + content.prefix(12) + [0, 0]
      case 0xEE where content.count >= 12 && content.starts(with: "Adobe".utf8):
        result += [0xFF, marker, 0, 14] + content.prefix(12)
      case 0xE2 where content.starts(with: "ICC_PROFILE\0".utf8): result += file[start..<position]
      case 0xE0...0xEF, 0xFE: break
      default: result += file[start..<position]
      }
      if isFirst, marker == 0xE0 { result += segment }
      isFirst = false
    }
    throw .corrupt("the JPEG is truncated")
  }

  private static let restarts: ClosedRange<UInt8> = 0xD0...0xD7

  /// The position of the marker after the data of a scan.
  private static func endOfScan(in file: UnsafeRawBufferPointer, from start: Int) -> Int {
    var position = start
    while let marker = JPEGScreening.nextMarker(in: file, from: &position) {
      if marker != 0, !restarts.contains(marker) { return position - 2 }
    }
    return file.count
  }

  // MARK: - PNG (third edition, section 11)

  /// The ancillary chunks that change what is shown.
  private static let shownChunks = Set(
    ["tRNS", "gAMA", "cHRM", "sRGB", "iCCP", "cICP", "mDCV", "cLLI", "sBIT", "pHYs", "acTL", "fcTL", "fdAT"])

  private static func png(_ file: UnsafeRawBufferPointer, _ exif: [UInt8]) -> [UInt8] {
    var result = Array(file.prefix(33))
    if !exif.isEmpty { result += chunk("eXIf", exif) }
    for chunk in PNGChunks(file) where chunk.isWhole {
      if chunk.name == PNGChunks.end { return result + self.chunk("IEND", []) }
      let name = String(decoding: file[(chunk.content.lowerBound - 4)..<chunk.content.lowerBound], as: UTF8.self)
      let isCritical = name.utf8.first.map { $0 & 0x20 == 0 } ?? false
      if isCritical || shownChunks.contains(name) {
        result += file[(chunk.content.lowerBound - 8)..<(chunk.content.upperBound + 4)]
      }
    }
    return result
  }

  private static func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
    let checked = Array(name.utf8) + content
    let sum = checked.withUnsafeBytes { libdeflate_crc32(0, $0.baseAddress, $0.count) }
    return big(UInt32(content.count)) + checked + big(sum)
  }

  private static func big(_ number: UInt32) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }

  // MARK: - WebP (RFC 9649 section 2)

  private static let (exifFlag, xmpFlag): (UInt8, UInt8) = (0x08, 0x04)
  private static let shownParts = Set(["VP8X", "VP8 ", "VP8L", "ALPH", "ICCP", "ANIM", "ANMF"])

  private static func webp(_ file: UnsafeRawBufferPointer, _ exif: [UInt8]) -> [UInt8] {
    var body = exif.isEmpty ? [] : extendedHeader(of: file)
    let length = Int(UInt32(littleEndian: file.loadUnaligned(fromByteOffset: 4, as: UInt32.self)))
    let whole = UnsafeRawBufferPointer(rebasing: file[..<min(file.count, 8 + length)])
    var seen = Set<String>()
    for chunk in WebPChunks(of: whole) where shownParts.contains(chunk.name) {
      // Decoders use the first of a kind.
      guard chunk.name == "ANMF" || seen.insert(chunk.name).inserted else { continue }
      let start = body.count
      let content = UnsafeRawBufferPointer(rebasing: whole[chunk.whole])
      body += chunk.name == "ANMF" ? frame(content) : Array(content)
      guard chunk.name == "VP8X", !chunk.content.isEmpty else { continue }
      body[start + 8] = body[start + 8] & ~(exifFlag | xmpFlag) | (exif.isEmpty ? 0 : exifFlag)
    }
    if !exif.isEmpty { body += Array("EXIF".utf8) + little(UInt32(exif.count)) + exif }
    return Array("RIFF".utf8) + little(UInt32(body.count + 4)) + Array("WEBP".utf8) + body
  }

  /// The first chunk of an extended file (section 2.7), if the file is a simple one.
  private static func extendedHeader(of file: UnsafeRawBufferPointer) -> [UInt8] {
    var chunks = WebPChunks(of: file)
    guard let first = chunks.next(), first.name != "VP8X",
      let header = try? ImageHeader.read(file, format: .webp), let width = header.width, let height = header.height
    else { return [] }
    // Lossless data has the flag after 14 bits for each side.
    let hasAlpha = first.name == "VP8L" && first.content.count > 4 && file[first.content.lowerBound + 4] & 0x10 != 0
    let sides = [width - 1, height - 1].flatMap { little(UInt32($0)).prefix(3) }
    return Array("VP8X".utf8) + little(10) + [exifFlag | (hasAlpha ? 0x10 : 0), 0, 0, 0] + sides
  }

  /// A frame of an animation, without unknown chunks.
  private static func frame(_ chunk: UnsafeRawBufferPointer) -> [UInt8] {
    // A name, a length, and 16 bytes about the frame.
    guard chunk.count > 24 else { return Array(chunk) }
    var content = Array(chunk[8..<24])
    // The parts follow as in a file.
    let parts = WebPChunks(of: UnsafeRawBufferPointer(rebasing: chunk[(24 - WebPChunks.headerLength)...]))
    for part in parts where ["ALPH", "VP8 ", "VP8L"].contains(part.name) {
      content += chunk[(part.whole.lowerBound + 12)..<(part.whole.upperBound + 12)]
    }
    return Array("ANMF".utf8) + little(UInt32(content.count)) + content
  }

  private static func little(_ number: UInt32) -> [UInt8] { withUnsafeBytes(of: number.littleEndian) { Array($0) } }
}

extension EncodedFile {
  /// The file with EXIF data, unless that is empty. The format must be one of `StrippedFile`.
  package func with(exif: [UInt8], _ format: ImageFormat) throws(DecodeError) -> EncodedFile {
    exif.isEmpty ? self : try StrippedFile.make(bytes, format, exif: exif)
  }
}
