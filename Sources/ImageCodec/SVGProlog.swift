/// Finds the root element of an XML document behind what may stand before it (XML 1.0 section 2.8).
enum SVGProlog {
  static func recognize(_ bytes: ArraySlice<UInt8>) -> Recognition {
    var scanner = Scanner(rest: bytes)
    switch scanner.take([0xEF, 0xBB, 0xBF]) {
    case .tooShort: return .needMore
    case .yes, .no: break
    }
    while true {
      scanner.skipWhiteSpace()
      if scanner.rest.isEmpty { return .needMore }
      guard let isSkipped = scanner.skipMarkup() else { return .needMore }
      if !isSkipped { return scanner.root() }
    }
  }

  private struct Scanner {
    enum Match { case yes, no, tooShort }

    var rest: ArraySlice<UInt8>

    mutating func take(_ expected: some Collection<UInt8>) -> Match {
      guard rest.starts(with: expected.prefix(rest.count)) else { return .no }
      guard rest.count >= expected.count else { return .tooShort }
      rest = rest.dropFirst(expected.count)
      return .yes
    }

    mutating func skipWhiteSpace() { rest = rest.drop(while: Self.isWhiteSpace) }

    /// Whether there was a declaration, instruction, comment or document type, which is then gone. Nil where the end of
    /// it, or what it is, is not there yet.
    mutating func skipMarkup() -> Bool? {
      var isCut = false
      for (start, end) in [("<?", "?>"), ("<!--", "-->")] {
        switch take(start.utf8) {
        case .yes: return skip(past: Array(end.utf8)) ? true : nil
        case .tooShort: isCut = true
        case .no: break
        }
      }
      switch take("<!DOCTYPE".utf8) {
      case .yes: return skipDocumentType() ? true : nil
      case .tooShort: isCut = true
      case .no: break
      }
      return isCut ? nil : false
    }

    func root() -> Recognition {
      var scan = self
      for name in ["<svg", "<svg:svg"] {
        var attempt = scan
        switch attempt.take(name.utf8) {
        case .tooShort: return .needMore
        case .no: continue
        case .yes:
          guard let next = attempt.rest.first else { return .needMore }
          if Self.isWhiteSpace(next) || next == UInt8(ascii: ">") || next == UInt8(ascii: "/") { return .image(.svg) }
          scan = self
        }
      }
      return .notAnImage
    }

    private mutating func skip(past end: [UInt8]) -> Bool {
      while let first = end.first, let index = rest.firstIndex(of: first) {
        rest = rest[index...]
        if take(end) == .yes { return true }
        rest = rest.dropFirst()
      }
      return false
    }

    /// Up to the `>` outside the brackets of an internal subset and outside quotes.
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
