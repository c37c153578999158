/// Character classes of HTTP and URLs, whose grammars are all ASCII.
extension UInt8 {
  package var isASCIIDigit: Bool { self >= UInt8(ascii: "0") && self <= UInt8(ascii: "9") }

  var isASCIIUppercase: Bool { self >= UInt8(ascii: "A") && self <= UInt8(ascii: "Z") }

  package var isASCIILetter: Bool { (self | 0x20) >= UInt8(ascii: "a") && (self | 0x20) <= UInt8(ascii: "z") }

  package var asciiLowercased: UInt8 { isASCIIUppercase ? self | 0x20 : self }

  /// The value of a hexadecimal digit in either case.
  var hexadecimalValue: UInt8? {
    switch self {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  /// RFC 3986 section 2.3.
  var isUnreserved: Bool {
    isASCIILetter || isASCIIDigit || self == UInt8(ascii: "-") || self == UInt8(ascii: ".") || self == UInt8(ascii: "_")
      || self == UInt8(ascii: "~")
  }
}

/// Percent-encoding (RFC 3986 section 2.1).
enum PercentEncoding {
  private static let digits = Array("0123456789ABCDEF".utf8)

  static func encoded(_ byte: UInt8) -> [UInt8] {
    [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
  }

  /// The byte encoded by the `%` at `index` and the two digits after it; nil if they are not hexadecimal digits.
  static func decodedByte<Bytes: RandomAccessCollection<UInt8>>(at index: Int, of bytes: Bytes) -> UInt8?
  where Bytes.Index == Int {
    guard bytes.endIndex - index > 2, let high = bytes[index + 1].hexadecimalValue,
      let low = bytes[index + 2].hexadecimalValue
    else { return nil }
    return high << 4 | low
  }

  /// The bytes that a text encodes. A `%` without two hexadecimal digits after it stands for itself.
  static func decoded<Bytes: RandomAccessCollection<UInt8>>(_ bytes: Bytes) -> [UInt8] where Bytes.Index == Int {
    var output: [UInt8] = []
    output.reserveCapacity(bytes.count)
    var index = bytes.startIndex
    while index < bytes.endIndex {
      let encoded = bytes[index] == UInt8(ascii: "%") ? decodedByte(at: index, of: bytes) : nil
      output.append(encoded ?? bytes[index])
      index += encoded == nil ? 1 : 3
    }
    return output
  }
}
