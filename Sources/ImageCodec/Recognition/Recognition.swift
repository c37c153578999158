/// The result of recognising content by its first bytes.
public enum Recognition: Sendable, Hashable {
  case image(ImageFormat)
  case notAnImage
  /// The bytes so far may be the start of an image.
  case needMore

  /// The maximum number of bytes that are inspected: an SVG may begin with long comments and declarations. With so many
  /// the result is never `needMore`.
  public static let prefixLength = 16_384

  /// Recognises the format by the first bytes of the content. `isComplete` means that no more bytes follow.
  public init(prefix: ArraySlice<UInt8>, isComplete: Bool) {
    let bytes = prefix.prefix(Self.prefixLength)
    let isLast = isComplete || bytes.count == Self.prefixLength
    var mayStillMatch = false
    for signature in Signature.all {
      switch signature.match(bytes) {
      case .yes:
        self = .image(signature.format)
        return
      case .tooShort: mayStillMatch = true
      case .no: break
      }
    }
    for recognize in [FileTypeBox.recognize, SVGProlog.recognize] {
      switch recognize(bytes) {
      case .image(let format):
        self = .image(format)
        return
      case .needMore: mayStillMatch = true
      case .notAnImage: break
      }
    }
    self = mayStillMatch && !isLast ? .needMore : .notAnImage
  }

  /// Whether content with these first bytes is an image; nil if more bytes are needed.
  @Sendable public static func isImage(prefix: ArraySlice<UInt8>) -> Bool? {
    switch Recognition(prefix: prefix, isComplete: false) {
    case .image: true
    case .notAnImage: false
    case .needMore: nil
    }
  }

  public init(prefix: [UInt8], isComplete: Bool) { self.init(prefix: prefix[...], isComplete: isComplete) }
}

/// The bytes at the start of every file of a format; nil stands for any byte.
private struct Signature: Sendable {
  enum Match { case yes, no, tooShort }

  let format: ImageFormat
  let pattern: [UInt8?]
  /// An additional test for a short signature. It gets at least as many bytes as the pattern has.
  var isPlausible: @Sendable (ArraySlice<UInt8>) -> Bool = { _ in true }

  func match(_ bytes: ArraySlice<UInt8>) -> Match {
    for (byte, expected) in zip(bytes, pattern) where expected != nil && expected != byte { return .no }
    guard bytes.count >= pattern.count else { return .tooShort }
    return isPlausible(bytes) ? .yes : .no
  }

  private static func text(_ text: String) -> [UInt8?] { text.utf8.map { $0 } }
  private static func any(_ count: Int) -> [UInt8?] { Array(repeating: nil, count: count) }

  static let all: [Signature] = [
    Signature(format: .jpeg, pattern: [0xFF, 0xD8, 0xFF]),
    Signature(format: .png, pattern: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]),
    Signature(format: .gif, pattern: text("GIF87a")),
    Signature(format: .gif, pattern: text("GIF89a")),
    Signature(format: .webp, pattern: text("RIFF") + any(4) + text("WEBP")),
    Signature(format: .jxl, pattern: [0xFF, 0x0A]),
    Signature(format: .jxl, pattern: [0, 0, 0, 12] + text("JXL ") + [0x0D, 0x0A, 0x87, 0x0A]),
    Signature(format: .jp2, pattern: [0, 0, 0, 12] + text("jP  ") + [0x0D, 0x0A, 0x87, 0x0A]),
    Signature(format: .jp2, pattern: [0xFF, 0x4F, 0xFF, 0x51]),
    Signature(format: .tiff, pattern: text("II") + [0x2A, 0]),
    Signature(format: .tiff, pattern: text("MM") + [0, 0x2A]),
    Signature(format: .tiff, pattern: text("II") + [0x2B, 0, 8, 0, 0, 0]),
    Signature(format: .tiff, pattern: text("MM") + [0, 0x2B, 0, 8, 0, 0]),
    // Two letters are too little for a signature: the second header's size must be a valid one as well.
    Signature(
      format: .bmp, pattern: text("BM") + any(12) + [nil, 0, 0, 0],
      isPlausible: { BitmapHeader.exists(length: Int($0[$0.startIndex + 14])) }),
    Signature(format: .ico, pattern: [0, 0, 1, 0] + any(18), isPlausible: isDirectory),
    // The same for cursors.
    Signature(format: .ico, pattern: [0, 0, 2, 0] + any(18), isPlausible: isDirectory),
  ]

  /// Whether there is at least one picture and the first does not overlap the directory.
  private static func isDirectory(_ bytes: ArraySlice<UInt8>) -> Bool {
    let field = { (index: Int) in Int(bytes[bytes.startIndex + index]) }
    let count = field(4) | field(5) << 8
    let offset = field(18) | field(19) << 8 | field(20) << 16 | field(21) << 24
    return count > 0 && (field(9) == 0 || field(9) == 255) && offset >= 6 + 16 * count
  }
}

/// The `ftyp` box at the start of AVIF and HEIC files (ISO/IEC 14496-12 section 4.3), whose brands give the format.
private enum FileTypeBox {
  private static let avif: Set<FourCC> = ["avif", "avis"]
  /// The brand of files with a minimized image box. Their second word is the codec's brand instead of a version.
  private static let minimized: FourCC = "mif3"
  private static let heic: Set<FourCC> = ["heic", "heix", "heim", "heis", "hevc", "hevx", "hevm", "hevs"]

  static func recognize(_ bytes: ArraySlice<UInt8>) -> Recognition {
    // A list of brands is short, so the upper half of its size is 0.
    guard bytes.prefix(2).allSatisfy({ $0 == 0 }),
      bytes.dropFirst(4).prefix(4).elementsEqual("ftyp".utf8.prefix(max(bytes.count - 4, 0)))
    else {
      return .notAnImage
    }
    guard bytes.count >= 16 else { return .needMore }
    let size = bytes.prefix(4).reduce(0) { $0 << 8 | Int($1) }
    guard size >= 16, size % 4 == 0 else { return .notAnImage }
    let brands = bytes.prefix(min(size, Recognition.prefixLength)).dropFirst(8)
    var names: [FourCC] = []
    var index = brands.startIndex
    while brands.endIndex - index >= 4 {
      // The second word is the version of the first.
      if index != brands.startIndex + 4 { names.append(FourCC(brands[index..<(index + 4)])) }
      index += 4
    }
    if names.first == Self.minimized, brands.count >= 8 {
      let codec = FourCC(brands.dropFirst(4).prefix(4))
      if avif.contains(codec) { return .image(.avif) }
      if heic.contains(codec) { return .image(.heic) }
    }
    if let major = names.first, heic.contains(major) { return .image(.heic) }
    if names.contains(where: avif.contains) { return .image(.avif) }
    if bytes.count < min(size, Recognition.prefixLength) { return .needMore }
    return names.contains(where: heic.contains) ? .image(.heic) : .notAnImage
  }
}

/// A four-character code, as boxes and chunks have.
struct FourCC: Hashable, ExpressibleByStringLiteral {
  let value: UInt32

  init(value: Int) { self.value = UInt32(truncatingIfNeeded: value) }

  init(_ bytes: some Sequence<UInt8>) { value = bytes.prefix(4).reduce(0) { $0 << 8 | UInt32($1) } }

  init(stringLiteral text: StaticString) { self = text.withUTF8Buffer { FourCC($0) } }
}
