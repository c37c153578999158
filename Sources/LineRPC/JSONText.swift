/// Writes scalars as JSON.
extension OutputText {
  public mutating func append(decimal value: Int64) {
    // A sign and the 19 digits of 2^63.
    append(atMost: 20) { start in
      var end = start
      if value < 0 {
        end.pointee = UInt8(ascii: "-")
        end += 1
      }
      var rest = value.magnitude
      let length = Self.countDigits(of: rest)
      var index = length
      // Two digits at a time.
      while rest >= 100 {
        let pair = Self.pairs.utf8Start + 2 * Int(truncatingIfNeeded: rest % 100)
        rest /= 100
        index -= 2
        (end[index], end[index + 1]) = (pair[0], pair[1])
      }
      if rest >= 10 {
        let pair = Self.pairs.utf8Start + 2 * Int(truncatingIfNeeded: rest)
        (end[0], end[1]) = (pair[0], pair[1])
      } else {
        end[0] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest)
      }
      return end + length - start
    }
  }

  private static let pairs: StaticString = """
    0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849\
    5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899
    """

  /// Compares instead of dividing, which takes longer.
  private static func countDigits(of value: UInt64) -> Int {
    var (length, power) = (1, UInt64(10))
    // 10^19 is the largest power of 10 below 2^64.
    while value >= power, length < 19 {
      length += 1
      power &*= 10
    }
    return value >= power ? length + 1 : length
  }

  /// Appends `string` in quotes. Everything but printable ASCII is escaped, code points beyond U+FFFF as surrogate
  /// pairs.
  public mutating func append(quoting string: String) {
    var string = string
    string.withUTF8 { utf8 in
      let text = UnsafeRawBufferPointer(utf8)
      var index = text.endOfPrintableString(from: 0)
      // In most strings nothing else follows.
      append(atMost: index + 2) { end in
        end[0] = UInt8(ascii: "\"")
        if let source = text.baseAddress {
          UnsafeMutableRawPointer(end + 1).copyMemory(from: source, byteCount: index)
        }
        end[index + 1] = UInt8(ascii: "\"")
        return index + (index == text.count ? 2 : 1)
      }
      if index == text.count { return }
      while index < text.count {
        index = appendEscape(of: utf8, at: index)
        let stop = text.endOfPrintableString(from: index)
        append(UnsafeRawBufferPointer(rebasing: text[index..<stop]))
        index = stop
      }
      append(UInt8(ascii: "\""))
    }
  }

  /// Appends the escape of the character at `index`, and returns the index of the next character.
  private mutating func appendEscape(of utf8: UnsafeBufferPointer<UInt8>, at index: Int) -> Int {
    let byte = utf8[index]
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"): append(short: byte)
    case 0x08: append(short: UInt8(ascii: "b"))
    case 0x0C: append(short: UInt8(ascii: "f"))
    case 0x0A: append(short: UInt8(ascii: "n"))
    case 0x0D: append(short: UInt8(ascii: "r"))
    case 0x09: append(short: UInt8(ascii: "t"))
    case ..<0x80: append(unit: UInt16(byte))
    default:
      // A Swift string is valid UTF-8, so the first byte of a sequence determines its length.
      let length = (~byte).leadingZeroBitCount
      var scalar = UInt32(byte & (0x7F >> UInt8(length)))
      for offset in 1..<length { scalar = scalar << 6 | UInt32(utf8[index + offset] & 0x3F) }
      if scalar < 0x10000 {
        append(unit: UInt16(scalar))
      } else {
        append(unit: UInt16(0xD800 + (scalar - 0x10000) >> 10))
        append(unit: UInt16(0xDC00 + (scalar - 0x10000) & 0x3FF))
      }
      return index + length
    }
    return index + 1
  }

  private mutating func append(short letter: UInt8) {
    append(UInt8(ascii: "\\"))
    append(letter)
  }

  private mutating func append(unit: UInt16) {
    append(short: UInt8(ascii: "u"))
    for shift in stride(from: 12, through: 0, by: -4) {
      let digit = UInt8(truncatingIfNeeded: unit >> UInt16(shift)) & 0xF
      append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
    }
  }
}
