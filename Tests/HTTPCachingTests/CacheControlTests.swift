import Testing

@testable import HTTPCaching

@Suite struct `Cache-Control` {
  struct Case: Sendable, CustomTestStringConvertible {
    var lines: [String]
    var expected: CacheControl

    init(_ lines: String..., change: (inout CacheControl) -> Void) {
      self.lines = lines
      expected = CacheControl()
      change(&expected)
    }

    var testDescription: String { lines.description }
  }

  static let cases = [
    Case("") { _ in },
    Case(" , ,, ") { _ in },
    Case("max-age=3600") { $0.maxAge = 3600 },
    Case("MaX-AgE=3600") { $0.maxAge = 3600 },
    Case(" foo , max-age=3600,bar=\"x\"") { $0.maxAge = 3600 },
    Case("max-age=1, max-age=2") { $0.maxAge = 1 },
    Case("max-age=1", "max-age=2") { $0.maxAge = 1 },
    Case("max-age=\"3600\"") { $0.maxAge = 3600 },
    Case("max-age=003600") { $0.maxAge = 3600 },
    Case("max-age='3600'") { $0.maxAge = 0 },
    Case("max-age=-3600") { $0.maxAge = 0 },
    Case("max-age=+3600") { $0.maxAge = 0 },
    Case("max-age=3600.0") { $0.maxAge = 0 },
    Case("max-age=3600a") { $0.maxAge = 0 },
    Case("max-age=a3600") { $0.maxAge = 0 },
    Case("max-age=") { $0.maxAge = 0 },
    Case("max-age") { $0.maxAge = 0 },
    Case("max-age =3600") { $0.maxAge = 0 },
    Case("max-age= 3600") { $0.maxAge = 0 },
    Case("max-age=36 00") { $0.maxAge = 0 },
    Case("max-age=\"3600\"x") { $0.maxAge = 0 },
    Case("max-age=3600 \t") { $0.maxAge = 3600 },
    Case("max-age=2147483648") { $0.maxAge = 1 << 31 },
    Case("max-age=99999999999999999999999999") { $0.maxAge = 1 << 31 },
    Case("x=\"max-age=3600\", max-age=1") { $0.maxAge = 1 },
    Case("max-age=1, x=\"max-age=3600, no-store\"") { $0.maxAge = 1 },
    Case("x=\"a\\\", no-store, \\\\\", public") { $0.isPublic = true },
    Case("x=\"never closed, no-store, max-age=5") { ($0.noStore, $0.maxAge) = (true, 5) },
    Case("x=\"\\") { _ in },
    Case("No-Store, PRIVATE, Must-Revalidate, must-understand") {
      ($0.noStore, $0.isPrivate, $0.mustRevalidate, $0.mustUnderstand) = (true, true, true, true)
    },
    Case("no-cache=\"set-cookie, etag\", immutable") { ($0.noCache, $0.immutable) = (true, true) },
    Case("no-store=x, no-cache =y") { ($0.noStore, $0.noCache) = (true, true) },
    Case("stale-while-revalidate=5, stale-if-error=x") { $0.staleWhileRevalidate = 5 },
    Case("max-stale, min-fresh=3, only-if-cached") { ($0.maxStale, $0.minFresh, $0.onlyIfCached) = (.max, 3, true) },
    Case("max-stale=7") { $0.maxStale = 7 },
    Case("max-stale=") { _ in },
    Case("max-age\u{A0}=3, é=1, max-age=2") { $0.maxAge = 2 },
  ]

  @Test(arguments: cases) func `every unusual form has one meaning`(_ test: Case) {
    #expect(CacheControl(test.lines) == test.expected)
  }
}
