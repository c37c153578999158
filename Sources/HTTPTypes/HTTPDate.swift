internal import Text

/// Conversion of HTTP dates (RFC 9110 section 5.6.7) to and from Unix seconds.
public enum HTTPDate {
  static let weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
  static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

  /// Unix seconds of a date in one of the three forms, or nil: `Sun, 06 Nov 1994 08:49:37 GMT` (IMF-fixdate),
  /// `Sunday, 06-Nov-94 08:49:37 GMT` (RFC 850), `Sun Nov  6 08:49:37 1994` (asctime).
  ///
  /// Letters may have either case, and the weekday need not match the date; everything else is strict. `now`, in Unix
  /// seconds, determines the century of a two-digit year, so that the year is never more than 50 years ahead.
  public static func parse(_ text: String, now: Int) -> Int? {
    guard (24...33).contains(text.utf8.count) else { return nil }
    let scanner = DateScanner(Array(text.utf8))
    return scanner.fixdate() ?? scanner.asctime() ?? scanner.rfc850(now: now)
  }

  /// Formats a time as IMF-fixdate, such as `Sun, 06 Nov 1994 08:49:37 GMT`. A time outside the years 0 to 9999 is
  /// moved to the nearest second inside.
  public static func format(_ unixSeconds: Int) -> String {
    let time = CivilTime(unixSeconds: unixSeconds)
    let month = months[time.month - 1]
    let clock = "\(twoDigits(time.hour)):\(twoDigits(time.minute)):\(twoDigits(time.second))"
    return "\(weekdays[time.weekday].prefix(3)), \(twoDigits(time.day)) \(month) \(fourDigits(time.year)) \(clock) GMT"
  }
}

/// The protocol's format of a time: RFC 3339 in UTC.
public enum Timestamp {
  /// Formats a time like `2026-11-21T11:26:49Z`. A time outside the years 0 to 9999 is moved to the nearest second
  /// inside.
  public static func format(_ unixSeconds: Int) -> String { format(unixSeconds, millisecond: nil) }

  /// Formats a time with milliseconds, like `2026-11-21T11:26:49.070Z`. `unixTime` is in milliseconds and not negative.
  public static func format(milliseconds unixTime: Int64) -> String {
    format(Int(unixTime / 1000), millisecond: Int(unixTime % 1000))
  }

  /// Written into the text's own storage, since each result of a load has a time.
  private static func format(_ unixSeconds: Int, millisecond: Int?) -> String {
    let time = CivilTime(unixSeconds: unixSeconds)
    return String(unsafeUninitializedCapacity: 24) { text in
      var end = 0
      func write(_ number: Int, digits: Int, _ separator: Unicode.Scalar) {
        var rest = number
        for place in (end..<(end + digits)).reversed() {
          text[place] = UInt8(ascii: "0") + UInt8(rest % 10)
          rest /= 10
        }
        text[end + digits] = UInt8(ascii: separator)
        end += digits + 1
      }
      write(time.year, digits: 4, "-")
      write(time.month, digits: 2, "-")
      write(time.day, digits: 2, "T")
      write(time.hour, digits: 2, ":")
      write(time.minute, digits: 2, ":")
      write(time.second, digits: 2, millisecond == nil ? "Z" : ".")
      if let millisecond { write(millisecond, digits: 3, "Z") }
      return end
    }
  }
}

private func twoDigits(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }

private func fourDigits(_ number: Int) -> String {
  String(repeating: "0", count: 4 - String(number).count) + "\(number)"
}

/// Reads a date from left to right. Each step returns nil if the text does not have the expected form.
private struct DateScanner {
  private let text: [UInt8]
  private var position = 0

  private static let weekdays = HTTPDate.weekdays.map { Array($0.utf8) }
  private static let months = HTTPDate.months.map { Array($0.utf8) }

  init(_ text: [UInt8]) { self.text = text }

  func fixdate() -> Int? {
    var scan = self
    guard scan.weekday(short: true), scan.literal(", "), let day = scan.digits(2), scan.literal(" "),
      let month = scan.month(), scan.literal(" "), let year = scan.digits(4), scan.literal(" ")
    else { return nil }
    return scan.clock(on: year, month, day, suffix: " GMT")
  }

  func rfc850(now: Int) -> Int? {
    var scan = self
    guard scan.weekday(short: false), scan.literal(", "), let day = scan.digits(2), scan.literal("-"),
      let month = scan.month(), scan.literal("-"), let lastDigits = scan.digits(2), scan.literal(" ")
    else { return nil }
    let year = CivilTime(unixSeconds: now).year
    let inThisCentury = year - year % 100 + lastDigits
    return [inThisCentury + 100, inThisCentury, inThisCentury - 100].lazy.compactMap { candidate in
      var clockScan = scan
      guard (0...9999).contains(candidate), let seconds = clockScan.clock(on: candidate, month, day, suffix: " GMT")
      else {
        return nil
      }
      return seconds <= Self.fiftyYears(after: now) ? seconds : nil
    }.first
  }

  func asctime() -> Int? {
    var scan = self
    guard scan.weekday(short: true), scan.literal(" "), let month = scan.month(), scan.literal(" "),
      let day = scan.literal(" ") ? scan.digits(1) : scan.digits(2), scan.literal(" "),
      let time = scan.hourMinuteSecond(), scan.literal(" "), let year = scan.digits(4), scan.isAtEnd
    else { return nil }
    return Self.seconds(year, month, day, time)
  }

  private static func fiftyYears(after now: Int) -> Int {
    var time = CivilTime(unixSeconds: now)
    time.year += 50
    return time.unixSeconds
  }

  private static func seconds(_ year: Int, _ month: Int, _ day: Int, _ time: (Int, Int, Int)) -> Int? {
    let civil = CivilTime(year: year, month: month, day: day, hour: time.0, minute: time.1, second: time.2)
    return civil.exists ? civil.unixSeconds : nil
  }

  private mutating func clock(on year: Int, _ month: Int, _ day: Int, suffix: StaticString) -> Int? {
    guard let time = hourMinuteSecond(), literal(suffix), isAtEnd else { return nil }
    return Self.seconds(year, month, day, time)
  }

  private mutating func hourMinuteSecond() -> (Int, Int, Int)? {
    guard let hour = digits(2), literal(":"), let minute = digits(2), literal(":"), let second = digits(2) else {
      return nil
    }
    return (hour, minute, second)
  }

  private var isAtEnd: Bool { position == text.count }

  private mutating func weekday(short: Bool) -> Bool {
    for name in Self.weekdays where consume(short ? name[..<3] : name[...]) { return true }
    return false
  }

  private mutating func month() -> Int? {
    for (index, name) in Self.months.enumerated() where consume(name[...]) { return index + 1 }
    return nil
  }

  private mutating func literal(_ expected: StaticString) -> Bool {
    expected.withUTF8Buffer { consume($0) }
  }

  /// Consumes `expected`, with letters in either case, or nothing.
  private mutating func consume(_ expected: some RandomAccessCollection<UInt8>) -> Bool {
    guard text.count - position >= expected.count else { return false }
    var end = position
    for byte in expected {
      guard text[end].asciiLowercased == byte.asciiLowercased else { return false }
      end += 1
    }
    position = end
    return true
  }

  private mutating func digits(_ count: Int) -> Int? {
    guard text.count - position >= count else { return nil }
    var number = 0
    for byte in text[position..<(position + count)] {
      guard byte.isASCIIDigit else { return nil }
      number = number * 10 + Int(byte - UInt8(ascii: "0"))
    }
    position += count
    return number
  }
}
