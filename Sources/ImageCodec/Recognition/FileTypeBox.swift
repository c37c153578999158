/// The `ftyp` box at the start of AVIF and HEIC files (ISO/IEC 14496-12 section 4.3), whose brands give the format.
enum FileTypeBox {
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
