import HTTPTypes
import Testing

/// 21 November 2026, 11:26:49 UTC.
private let now = 1_795_260_409

@Suite struct `HTTP dates` {
  static let valid: [(text: String, seconds: Int)] = [
    ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
    ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
    ("Sun Nov  6 08:49:37 1994", 784_111_777),
    ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
    ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
    ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600),
    ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199),
    ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
    ("Tue, 19 Jan 2038 14:14:08 GMT", 2_147_523_248),
    // A leap second counts as the first second of the next minute.
    ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
    // Letters of either case, and a weekday that does not match the date.
    ("SUN, 06 NOV 1994 08:49:37 gmt", 784_111_777),
    ("Mon, 06 Nov 1994 08:49:37 GMT", 784_111_777),
    ("Thu Aug  8 02:01:18 2050", 2_543_536_878),
    ("Mon Aug 18 02:01:18 2050", 2_544_400_878),
  ]

  @Test(arguments: valid) func `the three formats of RFC 9110 are parsed`(text: String, seconds: Int) {
    #expect(HTTPDate.parse(text, now: now) == seconds)
  }

  @Test(arguments: [
    "", "0", "-1", "now", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC",
    "Sun, 06 Nov 1994 08:49:37 AEST",
    "Sun, 06 Nov 94 08:49:37 GMT", "Sun 06 Nov 1994 08:49:37 GMT", "Sun, 06  Nov  1994 08:49:37 GMT",
    "Sun, 06-Nov-1994 08:49:37 GMT", "Sun, 06 Nov 1994 08.49.37 GMT", "Sun, 06 Nov 1994 8:49:37 GMT",
    "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:37 GMT",
    "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT",
    "Wed, 29 Feb 2023 00:00:00 GMT", "Mon, 29 Feb 1900 00:00:00 GMT", "Sun, 06 Foo 1994 08:49:37 GMT",
    "Xxx, 06 Nov 1994 08:49:37 GMT", " Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ",
    "Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT", "Sun, +6 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 08:49:37 GM\u{212A}", "Sun Nov 06 08:49:37 94", "Sun Nov  06 08:49:37 1994",
    "Sun, 06-Nov-94 08:49:37 GMT", "Sunday, 06 Nov 94 08:49:37 GMT", "Sunday, 31-Feb-94 08:49:37 GMT",
  ]) func `any other text is not a date`(text: String) {
    #expect(HTTPDate.parse(text, now: now) == nil)
  }

  @Test func `a two-digit year is never more than 50 years ahead`() {
    #expect(HTTPDate.parse("Thursday, 18-Aug-50 02:01:18 GMT", now: now) == 2_544_400_878)
    #expect(HTTPDate.parse("Saturday, 21-Nov-76 11:26:49 GMT", now: now) == now + 18_263 * 86_400)
    #expect(HTTPDate.parse("Sunday, 21-Nov-76 11:26:50 GMT", now: now) == now + 1 - 18_262 * 86_400)
    #expect(HTTPDate.parse("Sunday, 01-Jan-00 00:00:00 GMT", now: 4_102_444_799) == 4_102_444_800)
  }

  @Test func `a two-digit year near the year 9999 does not trap`() {
    #expect(HTTPDate.parse("Sunday, 06-Nov-94 08:49:37 GMT", now: .max) != nil)
    #expect(HTTPDate.parse("Sunday, 06-Nov-94 08:49:37 GMT", now: .min) == nil)
  }

  @Test func `a formatted date is parsed to the same time, in all eras`() {
    var seconds = -62_167_219_200
    while seconds <= 253_402_300_799 {
      #expect(HTTPDate.parse(HTTPDate.format(seconds), now: now) == seconds)
      seconds += 86_400 * 97 + 12_345
    }
    #expect(HTTPDate.format(784_111_777) == "Sun, 06 Nov 1994 08:49:37 GMT")
  }

  @Test func `times beyond four-digit years are moved inside`() {
    #expect(HTTPDate.format(.max) == "Fri, 31 Dec 9999 23:59:59 GMT")
    #expect(Timestamp.format(.min) == "0000-01-01T00:00:00Z")
    #expect(Timestamp.format(milliseconds: 1_000_000_000_007) == "2001-09-09T01:46:40.007Z")
    #expect(Timestamp.format(milliseconds: 0) == "1970-01-01T00:00:00.000Z")
  }

  @Test(arguments: [
    (0, "1970-01-01T00:00:00Z"), (now, "2026-11-21T11:26:49Z"), (-1, "1969-12-31T23:59:59Z"),
    (951_782_399, "2000-02-28T23:59:59Z"), (951_782_400, "2000-02-29T00:00:00Z"),
  ]) func `timestamps are RFC 3339 in UTC`(seconds: Int, text: String) {
    #expect(Timestamp.format(seconds) == text)
  }
}
