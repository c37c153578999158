import ImageCodec

/// A reader of the facts of three containers, written as simply as possible, with all of the file in one array.
struct NaiveContainer {
  var hasAlpha: Bool?
  var bitDepth: Int?
  var c2pa: Bool?

  /// Nil for the other formats.
  init?(_ file: [UInt8], _ format: ImageFormat) {
    switch format {
    case .jpeg: readJPEG(file)
    case .png: readPNG(file)
    case .webp: readWebP(file)
    default: return nil
    }
  }

  /// Nil if the file ends before it.
  private static func part(_ file: [UInt8], _ start: Int, _ count: Int) -> [UInt8]? {
    start + count <= file.count ? Array(file[start..<(start + count)]) : nil
  }

  private static func number(_ bytes: some Collection<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }

  private static let type = Build.text("c2pa") + [0, 0x11, 0, 0x10, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71]

  /// Whether a box is a manifest store; nil if the file ends before this is known.
  private static func isManifest(_ file: [UInt8], _ start: Int, _ length: Int) -> Bool? {
    guard length >= 8 else { return false }
    guard let head = part(file, start, 8) else { return nil }
    guard Array(head[4...]) == Build.text("jumb") else { return false }
    let skipped = number(head[..<4]) == 1 ? 16 : 8
    guard length >= skipped + 24 else { return false }
    guard let name = part(file, start + skipped + 4, 4) else { return nil }
    guard name == Build.text("jumd") else { return false }
    return part(file, start + skipped + 8, 16).map { $0 == type }
  }

  private mutating func readJPEG(_ file: [UInt8]) {
    var position = 2
    var found = false
    while true {
      guard let byte = Self.part(file, position, 1)?[0] else { break }
      guard byte == 0xFF, let marker = Self.part(file, position + 1, 1)?[0] else {
        if byte == 0xFF { break }
        position += 1
        continue
      }
      if marker == 0 || marker == 0xFF {
        position += 1
        continue
      }
      position += 2
      if marker == 1 || (0xD0...0xD8).contains(marker) { continue }
      if marker == 0xD9 || marker == 0xDA {
        (hasAlpha, c2pa) = (false, found)
        return
      }
      guard let length = Self.part(file, position, 2).map(Self.number), length >= 2 else { break }
      if (0xC0...0xCF).contains(marker), ![0xC4, 0xC8, 0xCC].contains(marker), length >= 8, bitDepth == nil {
        guard let frame = Self.part(file, position + 2, 6) else {
          bitDepth = Self.part(file, position + 2, 1).map { Int($0[0]) }
          break
        }
        bitDepth = Int(frame[0])
      }
      if marker == 0xEB, length > 10 {
        guard let mark = Self.part(file, position + 2, 2) else { break }
        if mark == Build.text("JP") {
          guard let isManifest = Self.isManifest(file, position + 10, length - 10) else { break }
          if isManifest { found = true }
        }
      }
      position += length
    }
    if found { c2pa = true }
  }

  private mutating func readPNG(_ file: [UInt8]) {
    guard let header = Self.part(file, 8, 25), header == Build.chunk("IHDR", Array(header[8..<21])) else { return }
    let (depth, color) = (header[16], header[17])
    let depths: [UInt8: [UInt8]] = [0: [1, 2, 4, 8, 16], 2: [8, 16], 3: [1, 2, 4, 8], 4: [8, 16], 6: [8, 16]]
    guard depths[color]?.contains(depth) == true, header[8] < 128, header[12] < 128 else { return }
    bitDepth = color == 3 ? 8 : Int(depth)
    var (alpha, found, isBeforePixels) = (color == 4 || color == 6, false, true)
    var position = 33
    while let head = Self.part(file, position, 8) {
      let (length, name) = (Self.number(head[..<4]), String(decoding: head[4...], as: UTF8.self))
      if name == "IEND" {
        (hasAlpha, c2pa) = (alpha, found)
        return
      }
      if name == "IDAT" { isBeforePixels = false }
      if name == "tRNS", length > 0, isBeforePixels { alpha = true }
      if name == "caBX" {
        guard let isManifest = Self.isManifest(file, position + 8, length) else { break }
        if isManifest { found = true }
      }
      position += length + 12
    }
    if alpha { hasAlpha = true }
    if found { c2pa = true }
  }

  private mutating func readWebP(_ file: [UInt8]) {
    bitDepth = 8
    var (alpha, found, isWhole) = (false, false, false)
    let end = Self.part(file, 4, 4).map { 8 + Self.number($0.reversed()) } ?? .max
    var position = 12
    while true {
      if position >= end {
        isWhole = true
        break
      }
      guard let head = Self.part(file, position, 8) else { break }
      let (length, name) = (Self.number(head[4...].reversed()), String(decoding: head[..<4], as: UTF8.self))
      if name == "VP8X", length >= 10 {
        guard let flags = Self.part(file, position + 8, 1) else { break }
        alpha = flags[0] & 0x10 != 0
      }
      if name == "ALPH" { alpha = true }
      if name == "VP8L", length >= 5 {
        guard let bits = Self.part(file, position + 9, 4) else { break }
        alpha = bits[3] & 0x10 != 0
      }
      if name == "C2PA" {
        guard let isManifest = Self.isManifest(file, position + 8, length) else { break }
        if isManifest { found = true }
      }
      position += 8 + length
      guard position <= file.count else { break }
      position += length % 2
    }
    if alpha || isWhole { hasAlpha = alpha }
    if found || isWhole { c2pa = found }
  }
}
