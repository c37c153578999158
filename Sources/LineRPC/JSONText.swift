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
      let length = rest < 10 ? 1 : Self.countDigits(of: rest)
      for index in stride(from: length - 1, through: 0, by: -1) {
        end[index] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
      }
      return end + length - start
    }
  }

  /// Compares instead of dividing, which takes longer.
  private static func countDigits(of value: UInt64) -> Int {
    var (length, power) = (1, UInt64(10))
    while value >= power {
      length += 1
      let next = power.multipliedReportingOverflow(by: 10)
      if next.overflow { break }
      power = next.partialValue
    }
    return length
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
