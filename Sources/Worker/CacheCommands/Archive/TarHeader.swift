/// The header of a member of a tar archive: a block in the ustar format (POSIX.1-2017, pax, section "ustar Interchange
/// Format").
struct TarHeader: Equatable {
  static let blockSize = 512

  /// The kinds of members that are read and written, by their typeflag.
  enum Kind: UInt8 {
    case file = 0x30
    /// Extended header records for the next member, or for all.
    case extended = 0x78
    case extendedForAll = 0x67
  }

  var name: String
  var kind = Kind.file
  var size: Int64
  /// Unix seconds.
  var modifiedAt = 0

  /// The maximum of a number of 11 octal digits: 8 GiB - 1.
  static let maxOctal: Int64 = (1 << 33) - 1

  /// The bytes that follow `size` bytes of content up to the next block.
  static func padding(after size: Int64) -> Int { Int((512 - size % 512) % 512) }

  // MARK: Encoding

  /// The block of the header. The size must be at most `maxOctal`, and the name at most 100 ASCII characters.
  var block: [UInt8] {
    var block = [UInt8](repeating: 0, count: Self.blockSize)
    func set(_ start: Int, _ text: String) { block.replaceSubrange(start..<start + text.utf8.count, with: text.utf8) }
    precondition(name.utf8.count <= 100 && size <= Self.maxOctal, "a longer name or file needs an extended header")
    set(0, name)
    set(100, "0000600\0")
    set(108, "0000000\0")
    set(116, "0000000\0")
    set(124, Self.octal(size, digits: 11))
    set(136, Self.octal(min(max(Int64(modifiedAt), 0), Self.maxOctal), digits: 11))
    block[156] = kind.rawValue
    set(257, "ustar\u{0}00")
    set(329, "0000000\0")
    set(337, "0000000\0")
    set(148, Self.octal(Int64(Self.checksum(of: block)), digits: 6) + "\0 ")
    return block
  }

  private static func octal(_ number: Int64, digits: Int) -> String {
    let text = String(number, radix: 8)
    return String(repeating: "0", count: digits - text.count) + text
  }

  /// The sum of all bytes, with spaces for the field of the sum.
  private static func checksum(of block: [UInt8]) -> Int {
    block.enumerated().reduce(0) { $0 + (148..<156 ~= $1.offset ? 0x20 : Int($1.element)) }
  }

  // MARK: Decoding

  init(name: String, kind: Kind = .file, size: Int64, modifiedAt: Int = 0) {
    (self.name, self.kind, self.size, self.modifiedAt) = (name, kind, size, modifiedAt)
  }

  /// Decodes a block that is not zero everywhere.
  init(decoding block: [UInt8]) throws(ArchiveError) {
    guard Self.number(block[148..<156]) == Int64(Self.checksum(of: block)), block[257..<262].elementsEqual("ustar".utf8)
    else { throw ArchiveError("no tar header where one must be") }
    guard let kind = Kind(rawValue: block[156] == 0 ? Kind.file.rawValue : block[156]) else {
      throw ArchiveError("a member that is no regular file")
    }
    guard let size = Self.number(block[124..<136]) else { throw ArchiveError("a tar header without a size") }
    // The prefix is a field of ustar; GNU tar has another use for these bytes.
    let isPOSIX = block[262] == 0
    let name = Self.text(block[0..<100])
    let prefix = isPOSIX ? Self.text(block[345..<500]) : ""
    self.init(
      name: prefix.isEmpty ? name : prefix + "/" + name, kind: kind, size: size,
      modifiedAt: Self.number(block[136..<148]).map { Int($0) } ?? 0)
  }

  private static func text(_ field: ArraySlice<UInt8>) -> String {
    String(decoding: field.prefix { $0 != 0 }, as: UTF8.self)
  }

  /// A number of at least one octal digit, or after a byte of 128 in base 256, as GNU tar writes large ones. Nil for
  /// anything else.
  static func number(_ field: ArraySlice<UInt8>) -> Int64? {
    if field.first == 0x80 {
      guard field.dropFirst().dropLast(8).allSatisfy({ $0 == 0 }) else { return nil }
      return Int64(exactly: field.suffix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
    let digits = field.drop { $0 == 0x20 }.prefix { $0 != 0x20 && $0 != 0 }
    guard !digits.isEmpty, digits.allSatisfy({ 0x30...0x37 ~= $0 }) else { return nil }
    return digits.reduce(0) { $0 << 3 | Int64($1 - 0x30) }
  }
}

/// The reason why an archive cannot be read further, as the end of a sentence such as "entry 7: …".
struct ArchiveError: Error, Equatable {
  let message: String

  init(_ message: String) { self.message = message }
}
