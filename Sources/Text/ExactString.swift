/// A text that is told from others by its bytes, as JSON and SQLite do, and not by what it looks like: to `String`, `é`
/// in one code point and `e` with an accent after it are equal, and have the same hash.
public struct ExactString: Hashable, Sendable {
  public let text: String

  @inlinable public init(_ text: String) { self.text = text }

  @inlinable public static func == (one: Self, other: Self) -> Bool { one.text.hasSameBytes(as: other.text) }

  @inlinable public func hash(into hasher: inout Hasher) {
    let isDone: Void? = text.utf8.withContiguousStorageIfAvailable { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    if isDone == nil { for byte in text.utf8 { hasher.combine(byte) } }
    // No byte of UTF-8: where one text ends and another follows makes a difference.
    hasher.combine(0xff as UInt8)
  }
}

extension ExactString: ExpressibleByStringLiteral {
  @inlinable public init(stringLiteral text: String) { self.init(text) }
}

extension String {
  @inlinable public func hasSameBytes(as other: String) -> Bool {
    let (one, other) = (utf8, other.utf8)
    guard one.count == other.count else { return false }
    let isSame = one.withContiguousStorageIfAvailable { one in
      other.withContiguousStorageIfAvailable { one.elementsEqual($0) }
    }
    return (isSame ?? nil) ?? one.elementsEqual(other)
  }
}
