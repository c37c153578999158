/// The rules of a robots.txt for one user agent (RFC 9309), as one buffer of bytes.
struct RobotsRules: Sendable {
  /// The part of a file that is read (RFC 9309 section 2.5 asks for at least 500 KiB).
  static let maxBytes = 512 << 10
  /// Everything is allowed: the server has no robots.txt (section 2.3.1.3).
  static let allowingAll = RobotsRules(rules: [], crawlDelay: nil)

  /// The rules, the most specific first. Each is its flags, the length of its pattern (4 bytes) and of its text (2
  /// bytes), the pattern and the text.
  private var bytes: [UInt8] = []
  private var wildcards = 0
  /// The time between two requests.
  let crawlDelay: Duration?

  private struct Flags {
    static let isAllowed: UInt8 = 1
    static let isAnchored: UInt8 = 2
    static let hasWildcards: UInt8 = 4
  }
  private static let headerSize = 7

  /// - Parameter userAgent: the value of the User-Agent field.
  init(_ file: [UInt8], for userAgent: String) {
    var reader = RobotsFile(userAgent)
    reader.read(file.prefix(Self.maxBytes))
    self.init(rules: reader.rules, crawlDelay: reader.crawlDelay)
  }

  private init(rules: [RobotsFile.Rule], crawlDelay: Duration?) {
    self.crawlDelay = crawlDelay
    bytes.reserveCapacity(rules.reduce(0) { $0 + Self.headerSize + $1.pattern.count + $1.text.count })
    // The order of the file decides among equals.
    let order = rules.indices.sorted { (rules[$0].precedence, -$0) > (rules[$1].precedence, -$1) }
    for rule in order.lazy.map({ rules[$0] }) {
      var flags: UInt8 = 0
      if rule.isAllowed { flags |= Flags.isAllowed }
      if rule.isAnchored { flags |= Flags.isAnchored }
      if rule.pattern.contains(UInt8(ascii: "*")) {
        flags |= Flags.hasWildcards
        wildcards += 1
      }
      bytes.append(flags)
      withUnsafeBytes(of: UInt32(rule.pattern.count)) { bytes.append(contentsOf: $0) }
      withUnsafeBytes(of: UInt16(rule.text.count)) { bytes.append(contentsOf: $0) }
      bytes += rule.pattern
      bytes += rule.text
    }
  }

  /// The memory that the rules take, in bytes.
  var byteCount: Int { bytes.count }

  /// Whether the thread of the loads may look up a path. An origin can have so many rules that it takes milliseconds.
  func isQuick(for target: String) -> Bool { bytes.count + wildcards * target.utf8.count <= 64 << 10 }

  /// The rule that disallows a request; nil if it is allowed. The longest rule that matches decides. If two have the
  /// same length, the one that allows decides (section 2.2.2).
  ///
  /// - Parameter target: the path and query of the URL.
  func refusal(of target: String) -> String? {
    guard !bytes.isEmpty else { return nil }
    let path = RobotsPath(target, hasWildcards: wildcards > 0)
    guard !path.isRobotsFile else { return nil }
    return bytes.withUnsafeBytes { bytes in
      var offset = 0
      while offset < bytes.count {
        let flags = bytes[offset]
        let length = Int(bytes.loadUnaligned(fromByteOffset: offset + 1, as: UInt32.self))
        let textLength = Int(bytes.loadUnaligned(fromByteOffset: offset + 5, as: UInt16.self))
        offset += Self.headerSize
        let pattern = UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + length)])
        offset += length + textLength
        let isAnchored = flags & Flags.isAnchored != 0
        let isMatching =
          flags & Flags.hasWildcards != 0
          ? path.matches(wildcards: pattern, isAnchored: isAnchored) : path.matches(pattern, isAnchored: isAnchored)
        guard isMatching else { continue }
        guard flags & Flags.isAllowed == 0 else { return nil }
        let text = UnsafeRawBufferPointer(rebasing: bytes[(offset - textLength)..<offset])
        let shown = text.isEmpty ? String(decoding: pattern, as: UTF8.self) : String(decoding: text, as: UTF8.self)
        return "Disallow: \(shown)" + (text.isEmpty && isAnchored ? "$" : "")
      }
      return nil
    }
  }
}
