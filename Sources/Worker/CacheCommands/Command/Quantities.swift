/// Quantities as text for people, in the syntax of the options.
enum Quantities {
  /// `512`, `4.0K`, `121K`, `3.2M`: at most four characters, rounded up, as du(1) prints sizes.
  static func size(_ bytes: Int64) -> String {
    guard bytes >= 1024 else { return String(bytes) }
    var (value, units) = (Double(bytes) / 1024, "KMGTPE"[...])
    while value > 1023, units.count > 1 { (value, units) = (value / 1024, units.dropFirst()) }
    let tenths = (value * 10).rounded(.up)
    let number = tenths < 100 ? "\(Int(tenths) / 10).\(Int(tenths) % 10)" : String(Int(value.rounded(.up)))
    return number + units.prefix(1)
  }

  /// `45s`, `12m`, `3h`, `7d`: the largest unit of which there are at least two, rounded down.
  static func duration(_ seconds: Int) -> String {
    for (unit, length) in [("d", 86_400), ("h", 3600), ("m", 60)] where seconds >= 2 * length {
      return "\(seconds / length)\(unit)"
    }
    return "\(max(seconds, 0))s"
  }

  static func count(_ number: Int, _ singular: String, _ plural: String) -> String {
    "\(number) \(number == 1 ? singular : plural)"
  }
}
