internal import Platform

/// A text that is compared by its bytes, as in JSON and SQLite, and not by canonical equivalence. `String` treats `é`
/// as one code point and `e` with a combining accent as equal, with the same hash.
public struct ExactString: Hashable, Sendable {
  public let text: String

  @inlinable public init(_ text: String) { self.text = text }

  @inlinable public static func == (one: Self, other: Self) -> Bool { one.text.hasSameBytes(as: other.text) }

  @inlinable public func hash(into hasher: inout Hasher) {
    let isDone: Void? = text.utf8.withContiguousStorageIfAvailable { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    if isDone == nil { for byte in text.utf8 { hasher.combine(byte) } }
    // 0xff never occurs in UTF-8, so it separates one text from the next.
    hasher.combine(0xff as UInt8)
  }
}

extension ExactString: ExpressibleByStringLiteral {
  @inlinable public init(stringLiteral text: String) { self.init(text) }
}

extension String {
  public func hasSameBytes(as other: String) -> Bool {
    let (one, other) = (utf8, other.utf8)
    guard one.count == other.count else { return false }
    guard !one.isEmpty else { return true }
    let isSame = one.withContiguousStorageIfAvailable { one in
      other.withContiguousStorageIfAvailable { memcmp(one.baseAddress!, $0.baseAddress!, one.count) == 0 }
    }
    return (isSame ?? nil) ?? one.elementsEqual(other)
  }
}

extension BidirectionalCollection<UInt8> {
  /// The bytes without spaces and tabs at both ends: the optional white space of HTTP (RFC 9110 section 5.6.3).
  @inlinable public var trimmingBlanks: SubSequence {
    func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
    var (start, end) = (startIndex, endIndex)
    while start < end, isBlank(self[start]) { formIndex(after: &start) }
    while start < end, isBlank(self[index(before: end)]) { formIndex(before: &end) }
    return self[start..<end]
  }
}

extension UnsafeRawBufferPointer {
  public var isASCII: Bool {
    var union: UInt8 = 0
    for byte in self { union |= byte }
    return union < 0x80
  }
}
