/// Parsing of strings and numbers.
extension JSONParser {
  /// Parses a string; `position` must be at its opening quote.
  mutating func string() throws(JSONError) -> String {
    position += 1
    let start = position
    position = text.endOfPlainString(from: start)
    guard peek() == UInt8(ascii: "\"") else { return try escapedString(from: start) }
    defer { position += 1 }
    return try decoded(UnsafeRawBufferPointer(rebasing: text[start..<position]), from: start)
  }

  private func decoded(_ utf8: UnsafeRawBufferPointer, from start: Int) throws(JSONError) -> String {
    // Validating short strings costs as much as all other parsing, and ASCII is always valid.
    if utf8.isASCII { return String(decoding: utf8, as: UTF8.self) }
    guard let string = String(validating: utf8, as: UTF8.self) else {
      throw JSONError(reason: "invalid UTF-8 in a string", offset: start)
    }
    return string
  }

  /// Parses the rest of a string; `position` is at its first escape or at an error.
  private mutating func escapedString(from start: Int) throws(JSONError) -> String {
    var utf8: [UInt8] = []
    var plain = start
    while true {
      utf8.append(contentsOf: UnsafeRawBufferPointer(rebasing: text[plain..<position]))
      switch peek() {
      case UInt8(ascii: "\\"):
        try appendEscape(to: &utf8)
        plain = position
        position = text.endOfPlainString(from: position)
      case UInt8(ascii: "\""):
        position += 1
        let string = utf8.withUnsafeBytes { utf8 in
          Result { () throws(JSONError) in try decoded(utf8, from: start) }
        }
        return try string.get()
      default:
        throw error("unescaped control character in a string")
      }
    }
  }

  private mutating func appendEscape(to utf8: inout [UInt8]) throws(JSONError) {
    position += 1
    let letter = peek()
    switch letter {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): utf8.append(letter)
    case UInt8(ascii: "b"): utf8.append(0x08)
    case UInt8(ascii: "f"): utf8.append(0x0C)
    case UInt8(ascii: "n"): utf8.append(0x0A)
    case UInt8(ascii: "r"): utf8.append(0x0D)
    case UInt8(ascii: "t"): utf8.append(0x09)
    case UInt8(ascii: "u"):
      position += 1
      utf8.append(contentsOf: UTF8.encode(try escapedScalar())!)
      return
    default: throw error("unknown escape sequence")
    }
    position += 1
  }

  /// Parses the digits after `\u`, and the second escape of a surrogate pair.
  private mutating func escapedScalar() throws(JSONError) -> Unicode.Scalar {
    let start = position
    let unit = try hexadecimalUnit()
    if let scalar = Unicode.Scalar(unit) { return scalar }
    if UTF16.isLeadSurrogate(unit), peek() == UInt8(ascii: "\\") {
      position += 1
      if peek() == UInt8(ascii: "u") {
        position += 1
        let second = try hexadecimalUnit()
        if UTF16.isTrailSurrogate(second) { return UTF16.decode(UTF16.EncodedScalar([unit, second])) }
      }
    }
    throw JSONError(reason: "unpaired surrogate", offset: start)
  }

  private mutating func hexadecimalUnit() throws(JSONError) -> UInt16 {
    var unit: UInt16 = 0
    for _ in 0..<4 {
      let digit: UInt8
      switch peek() {
      case let byte where UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte: digit = byte - UInt8(ascii: "0")
      case let byte where UInt8(ascii: "a")...UInt8(ascii: "f") ~= byte: digit = byte - UInt8(ascii: "a") + 10
      case let byte where UInt8(ascii: "A")...UInt8(ascii: "F") ~= byte: digit = byte - UInt8(ascii: "A") + 10
      default: throw error("expected four hexadecimal digits after \\u")
      }
      unit = unit << 4 | UInt16(digit)
      position += 1
    }
    return unit
  }

  /// Parses a number; `position` must be at its sign or first digit.
  mutating func number() throws(JSONError) -> JSON {
    let start = position
    let isNegative = peek() == UInt8(ascii: "-")
    if isNegative { position += 1 }
    var isExact = true
    var integer: Int64 = 0
    let firstDigit = position
    while let digit = nextDigit() {
      // Computed as a negative number, since that range has one number more.
      let (product, overflow) = integer.multipliedReportingOverflow(by: 10)
      let (sum, overflowToo) = product.subtractingReportingOverflow(Int64(digit))
      if overflow || overflowToo { isExact = false }
      integer = sum
    }
    guard position > firstDigit else { throw error("expected a digit after -") }
    guard position == firstDigit + 1 || text[firstDigit] != UInt8(ascii: "0") else {
      throw JSONError(reason: "a number must not begin with 0", offset: start)
    }
    if try skipFraction() { isExact = false }
    if try skipExponent() { isExact = false }
    if isExact {
      if isNegative { return .integer(integer) }
      if integer != .min { return .integer(-integer) }
    }
    let literal = String(decoding: UnsafeRawBufferPointer(rebasing: text[start..<position]), as: UTF8.self)
    guard let number = Double(literal), number.isFinite else {
      throw JSONError(reason: "number out of range", offset: start)
    }
    return .number(number)
  }

  private mutating func nextDigit() -> UInt8? {
    let byte = peek()
    guard UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte else { return nil }
    position += 1
    return byte - UInt8(ascii: "0")
  }

  private mutating func skipFraction() throws(JSONError) -> Bool {
    guard peek() == UInt8(ascii: ".") else { return false }
    position += 1
    try skipDigits()
    return true
  }

  private mutating func skipExponent() throws(JSONError) -> Bool {
    guard peek() | 0x20 == UInt8(ascii: "e") else { return false }
    position += 1
    if peek() == UInt8(ascii: "+") || peek() == UInt8(ascii: "-") { position += 1 }
    try skipDigits()
    return true
  }

  private mutating func skipDigits() throws(JSONError) {
    guard nextDigit() != nil else { throw error("expected a digit") }
    while nextDigit() != nil {}
  }
}
