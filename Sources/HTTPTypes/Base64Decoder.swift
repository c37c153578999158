/// Base64 a byte at a time, with the forgiveness of the Infra standard: white space does not count, and the `=` at the
/// end may be missing.
struct Base64Decoder {
  private var output: [UInt8] = []
  private var bits: UInt32 = 0
  /// Digits, without white space and padding.
  private var digits = 0
  private var padding = 0
  private var isInvalid = false
  /// At hand for each byte without the check whether the static one has been made.
  private let values = Base64Decoder.values

  init(capacity: Int) { output.reserveCapacity(capacity) }

  mutating func append(_ byte: UInt8) {
    let value = values[Int(byte)]
    if value < 64, padding > 0 {
      padding = 3  // too many: nothing may follow the padding
    } else if value < 64 {
      bits = bits << 6 | UInt32(value)
      digits += 1
      if digits % 4 == 0 {
        output.append(UInt8(truncatingIfNeeded: bits >> 16))
        output.append(UInt8(truncatingIfNeeded: bits >> 8))
        output.append(UInt8(truncatingIfNeeded: bits))
      }
    } else if byte == UInt8(ascii: "=") {
      padding += 1
    } else if value != Self.whiteSpace {
      isInvalid = true
    }
  }

  consuming func finish() -> Result<[UInt8], DataURL.Invalid> {
    guard !isInvalid else {
      return .failure(DataURL.Invalid(description: "the data: URL has a character that is no base64"))
    }
    guard padding == 0 || (padding <= 2 && (digits + padding) % 4 == 0), digits % 4 != 1 else {
      return .failure(DataURL.Invalid(description: "the base64 of the data: URL is cut short or wrongly padded"))
    }
    if digits % 4 == 2 {
      output.append(UInt8(truncatingIfNeeded: bits >> 4))
    } else if digits % 4 == 3 {
      output.append(UInt8(truncatingIfNeeded: bits >> 10))
      output.append(UInt8(truncatingIfNeeded: bits >> 2))
    }
    return .success(output)
  }

  private static let whiteSpace: UInt8 = 64

  private static let values: [UInt8] = {
    var values = [UInt8](repeating: 65, count: 256)
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    for (value, digit) in alphabet.utf8.enumerated() { values[Int(digit)] = UInt8(value) }
    for space in "\t\n\u{C}\r ".utf8 { values[Int(space)] = whiteSpace }
    return values
  }()
}
