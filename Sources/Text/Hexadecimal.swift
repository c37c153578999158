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
