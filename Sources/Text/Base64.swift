/// Base64 with the standard alphabet (RFC 4648 section 4).
public enum Base64 {
  public static func encode(_ data: [UInt8]) -> [UInt8] {
    // All empty arrays share their storage, which must not be written to.
    if data.isEmpty { return [] }
    return [UInt8](unsafeUninitializedCapacity: length(of: data.count)) { text, count in
      count = data.withUnsafeBytes { encode($0, to: text.baseAddress!) }
    }
  }

  /// Length of the encoding of `count` bytes.
  public static func length(of count: Int) -> Int { (count + 2) / 3 * 4 }

  /// Writes the encoding of `data` and returns its length.
  public static func encode(_ data: UnsafeRawBufferPointer, to text: UnsafeMutablePointer<UInt8>) -> Int {
    letters.withUnsafeBufferPointer { letters in
      var (read, write) = (0, 0)
      while data.count - read >= 3 {
        let bits = UInt32(data[read]) << 16 | UInt32(data[read + 1]) << 8 | UInt32(data[read + 2])
        text[write] = letters[Int(bits >> 18)]
        text[write + 1] = letters[Int(bits >> 12 & 63)]
        text[write + 2] = letters[Int(bits >> 6 & 63)]
        text[write + 3] = letters[Int(bits & 63)]
        read += 3
        write += 4
      }
      guard read < data.count else { return write }
      let hasTwo = data.count - read == 2
      let bits = UInt32(data[read]) << 16 | (hasTwo ? UInt32(data[read + 1]) << 8 : 0)
      text[write] = letters[Int(bits >> 18)]
      text[write + 1] = letters[Int(bits >> 12 & 63)]
      text[write + 2] = hasTwo ? letters[Int(bits >> 6 & 63)] : padding
      text[write + 3] = padding
      return write + 4
    }
  }

  /// Decodes `text`; nil if it is not base64.
  ///
  /// Padding may be omitted, but not half of it. White space and other alphabets are refused. Bits beyond the last
  /// whole byte are ignored, as browsers do for `data:` URLs (WHATWG Infra, forgiving-base64 decode).
  public static func decode(_ text: String) -> [UInt8]? {
    var text = text
    return text.withUTF8 { decode(UnsafeRawBufferPointer($0)) }
  }

  /// Like `decode` of a string.
  public static func decode(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
    var count = text.count
    if count > 0, count % 4 == 0, text[count - 1] == padding {
      count -= text[count - 2] == padding ? 2 : 1
    }
    guard count % 4 != 1 else { return nil }
    if count == 0 { return [] }
    let size = count / 4 * 3 + count % 4 * 3 / 4
    var isValid = true
    let data = [UInt8](unsafeUninitializedCapacity: size) { data, written in
      values.withUnsafeBufferPointer { values in
        var bad: UInt8 = 0
        var (read, write) = (0, 0)
        while count - read >= 4 {
          let (a, b) = (values[Int(text[read])], values[Int(text[read + 1])])
          let (c, d) = (values[Int(text[read + 2])], values[Int(text[read + 3])])
          bad |= a | b | c | d
          let bits = UInt32(a) << 18 | UInt32(b) << 12 | UInt32(c) << 6 | UInt32(d)
          data[write] = UInt8(truncatingIfNeeded: bits >> 16)
          data[write + 1] = UInt8(truncatingIfNeeded: bits >> 8)
          data[write + 2] = UInt8(truncatingIfNeeded: bits)
          read += 4
          write += 3
        }
        if count - read >= 2 {
          let (a, b) = (values[Int(text[read])], values[Int(text[read + 1])])
          let c = count - read == 3 ? values[Int(text[read + 2])] : 0
          bad |= a | b | c
          data[write] = a << 2 | b >> 4
          if count - read == 3 { data[write + 1] = b << 4 | c >> 2 }
        }
        isValid = bad & invalid == 0
      }
      written = size
    }
    return isValid ? data : nil
  }

  private static let padding = UInt8(ascii: "=")
  /// A bit that is set in no letter's value.
  private static let invalid: UInt8 = 0x80

  private static let letters = [UInt8]("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  private static let values: [UInt8] = {
    var values = [UInt8](repeating: invalid, count: 256)
    for (value, letter) in letters.enumerated() { values[Int(letter)] = UInt8(value) }
    return values
  }()
}

/// The lowest `digits` hexadecimal digits of `value`, in lower case.
public func hexadecimal(_ value: UInt64, digits: Int) -> String {
  String(unsafeUninitializedCapacity: digits) { text in
    writeHexadecimal(value, digits: digits, to: text.baseAddress!)
    return digits
  }
}

/// Writes the lowest `digits` hexadecimal digits of `value`, in lower case.
public func writeHexadecimal(_ value: UInt64, digits: Int, to text: UnsafeMutablePointer<UInt8>) {
  var (value, index) = (value, digits)
  while index > 0 {
    index -= 1
    let digit = UInt8(truncatingIfNeeded: value) & 15
    text[index] = digit < 10 ? 48 + digit : 87 + digit
    value >>= 4
  }
}
