/// Finds the root element of an XML document after its prolog (XML 1.0 section 2.8).
enum SVGProlog {
  static func recognize(_ bytes: ArraySlice<UInt8>) -> Recognition {
    var scanner = Scanner(rest: inBytes(bytes))
    return scanner.skipToRoot() ? scanner.root() : .needMore
  }

  /// The attributes of the root's tag, as text; nil if the tag is incomplete.
  static func rootAttributes(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    var scanner = Scanner(rest: bytes)
    guard scanner.skipToRoot(), scanner.root() == .image(.svg) else { return nil }
    return scanner.tag()
  }

  /// Reduces UTF-16 to the bytes of its ASCII characters (XML 1.0 appendix F.1); others become question marks.
  static func inBytes(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let low: Int
    switch (bytes.first, bytes.dropFirst().first) {
    case (0xFF, 0xFE), (UInt8(ascii: "<"), 0): low = 0
    case (0xFE, 0xFF), (0, UInt8(ascii: "<")): low = 1
    default: return bytes
    }
    var text: [UInt8] = []
    text.reserveCapacity(bytes.count / 2)
    for start in stride(from: bytes.startIndex, to: bytes.endIndex - 1, by: 2) {
      text.append(bytes[start + 1 - low] == 0 ? bytes[start + low] : UInt8(ascii: "?"))
    }
    return bytes.first == 0xFF || bytes.first == 0xFE ? text.dropFirst() : text[...]
  }

  private struct Scanner {
    enum Match { case yes, no, tooShort }

    var rest: ArraySlice<UInt8>

    mutating func consume(_ expected: some Collection<UInt8>) -> Match {
      guard rest.starts(with: expected.prefix(rest.count)) else { return .no }
      guard rest.count >= expected.count else { return .tooShort }
      rest = rest.dropFirst(expected.count)
      return .yes
    }

    /// Skips the prolog. Whether anything follows it.
    mutating func skipToRoot() -> Bool {
      if consume([0xEF, 0xBB, 0xBF]) == .tooShort { return false }
      while true {
        skipWhiteSpace()
        guard !rest.isEmpty, let isSkipped = skipMarkup() else { return false }
        if !isSkipped { return true }
      }
    }

    mutating func skipWhiteSpace() { rest = rest.drop(while: Self.isWhiteSpace) }

    /// Skips a declaration, processing instruction, comment or document type. Whether there was one; nil if it is
    /// incomplete or its kind is not known yet.
    mutating func skipMarkup() -> Bool? {
      var isCut = false
      for (start, end) in [("<?", "?>"), ("<!--", "-->")] {
        switch consume(start.utf8) {
        case .yes: return skip(past: Array(end.utf8)) ? true : nil
        case .tooShort: isCut = true
        case .no: break
        }
      }
      switch consume("<!DOCTYPE".utf8) {
      case .yes: return skipDocumentType() ? true : nil
      case .tooShort: isCut = true
      case .no: break
      }
      return isCut ? nil : false
    }

    /// Whether the root is `svg`, with or without a prefix.
    func root() -> Recognition {
      guard rest.first == UInt8(ascii: "<") else { return .notAnImage }
      let name = rest.dropFirst().prefix(while: Self.isNamed)
      let isPrefixed = name.contains(UInt8(ascii: ":"))
      let local = isPrefixed ? name.drop { $0 != UInt8(ascii: ":") }.dropFirst() : name
      guard let next = rest[name.endIndex...].first else {
        // The characters so far may be the start of a prefix.
        let isPossible = "svg".utf8.starts(with: local) || !isPrefixed && name.count <= Self.maxPrefixLength
        return isPossible ? .needMore : .notAnImage
      }
      let isEnd = Self.isWhiteSpace(next) || next == UInt8(ascii: ">") || next == UInt8(ascii: "/")
      return isEnd && local.elementsEqual("svg".utf8) && name.count - local.count <= Self.maxPrefixLength
        ? .image(.svg) : .notAnImage
    }

    private static let maxPrefixLength = 64

    /// The text after the root's name, up to the end of its tag outside quotes.
    func tag() -> ArraySlice<UInt8>? {
      let start = rest.dropFirst().drop(while: Self.isNamed)
      var quote: UInt8?
      for index in start.indices {
        let byte = start[index]
        if let open = quote {
          if byte == open { quote = nil }
        } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
          quote = byte
        } else if byte == UInt8(ascii: ">") {
          return start[..<index]
        }
      }
      return nil
    }

    private static func isNamed(_ byte: UInt8) -> Bool {
      switch byte {
      case 0x30...0x3A, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x80...0xFF: true
      default: false
      }
    }

    private mutating func skip(past end: [UInt8]) -> Bool {
      while let first = end.first, let index = rest.firstIndex(of: first) {
        rest = rest[index...]
        if consume(end) == .yes { return true }
        rest = rest.dropFirst()
      }
      return false
    }

    /// Skips to the `>` that is outside quotes and outside the brackets of an internal subset.
    private mutating func skipDocumentType() -> Bool {
      var quote: UInt8?
      var isInSubset = false
      while let byte = rest.popFirst() {
        if let open = quote {
          if byte == open { quote = nil }
          continue
        }
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "'"): quote = byte
        case UInt8(ascii: "["): isInSubset = true
        case UInt8(ascii: "]"): isInSubset = false
        case UInt8(ascii: ">") where !isInSubset: return true
        default: break
        }
      }
      return false
    }

    private static func isWhiteSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (9...13).contains(byte) }
  }
}
