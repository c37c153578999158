internal import HTTPTypes

/// Numbers with units as users write and read them.
enum Quantity {
  /// 100 years.
  static let maxMilliseconds: Int64 = 100 * 365 * 86_400_000

  /// `500`, `500K`, `128M`, `1G`.
  static func size(_ text: String, kilo: Int64) -> Int64? {
    let unit: Int64? =
      switch text.utf8.last?.asciiLowercased {
      case UInt8(ascii: "k"): kilo
      case UInt8(ascii: "m"): kilo * kilo
      case UInt8(ascii: "g"): kilo * kilo * kilo
      default: nil
      }
    return scaled(unit == nil ? text[...] : text.dropLast(), by: unit ?? 1)
  }

  /// The end of a sentence about a text that is no duration.
  static let durationRule = "must be a duration of at most 36500d, such as 500ms, 15s, 5m, 2h or 7d"

  /// `0`, `500ms`, `15s`, `5m`, `2h`, `7d`.
  static func duration(_ text: String) -> Duration? {
    if text == "0" { return .zero }
    let units: [(String, Int64)] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)]
    guard let (name, factor) = units.first(where: { text.hasSuffix($0.0) }),
      let milliseconds = scaled(text.dropLast(name.count), by: factor), milliseconds <= maxMilliseconds
    else { return nil }
    return .milliseconds(milliseconds)
  }

  private static func scaled(_ digits: Substring, by factor: Int64) -> Int64? {
    guard !digits.isEmpty, digits.utf8.allSatisfy(\.isASCIIDigit), let number = Int64(digits) else {
      return nil
    }
    let (product, overflow) = number.multipliedReportingOverflow(by: factor)
    return overflow ? nil : product
  }

  /// `512`, `4.0K`, `121K`, `3.2M`: at most four characters, rounded up, as du(1) prints sizes.
  static func text(size bytes: Int64) -> String {
    guard bytes >= 1024 else { return String(bytes) }
    var (value, units) = (Double(bytes) / 1024, "KMGTPE"[...])
    while value > 1023, units.count > 1 { (value, units) = (value / 1024, units.dropFirst()) }
    let tenths = (value * 10).rounded(.up)
    let number = tenths < 100 ? "\(Int(tenths) / 10).\(Int(tenths) % 10)" : String(Int(value.rounded(.up)))
    return number + units.prefix(1)
  }

  /// `45s`, `12m`, `3h`, `7d`: the largest unit of which there are at least two, rounded down.
  static func text(seconds: Int) -> String {
    for (unit, length) in [("d", 86_400), ("h", 3600), ("m", 60)] where seconds >= 2 * length {
      return "\(seconds / length)\(unit)"
    }
    return "\(max(seconds, 0))s"
  }

  static func text(_ number: Int, of noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }
}
