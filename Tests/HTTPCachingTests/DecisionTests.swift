import HTTPCaching
import HTTPTypes
import Testing

/// The time at which every response of the tables was stored, unless it has its own.
private let stored = 1_795_260_409
private let policy = CachePolicy(maxAge: 7 * 86_400)

private func date(_ offset: Int) -> String { HTTPDate.format(stored + offset) }

private func response(_ headers: HeaderFields, status: Int = 200, selecting: HeaderFields = [:]) -> CachedResponse {
  CachedResponse(
    status: status, headers: Storing.fields(of: headers, receivedAt: stored), selectingFields: selecting,
    requestTime: stored, responseTime: stored)
}

private let plainTag: HeaderFields = ["if-none-match": "\"a\""]

@Suite struct `Cache decisions` {
  struct Case: Sendable, CustomTestStringConvertible {
    /// The fields of the stored response.
    var said: HeaderFields
    /// The mode and the fields of the request.
    var mode = CacheMode.default
    var asked: HeaderFields = [:]
    /// Seconds after the response was stored.
    var after: Int
    var decision: CacheDecision

    var testDescription: String { "\(mode.rawValue) \(asked.lines.map { "\($0.name): \($0.value)" }) after \(after) s" }
  }

  private static let maxAge: HeaderFields = ["cache-control": "max-age=60", "etag": "\"a\""]
  private static let fresh = CacheDecision.serve(index: 0, isFresh: true)
  private static let stale = CacheDecision.serve(index: 0, isFresh: false)
  private static let fetch = CacheDecision.fetch(headers: [:])
  private static let revalidate = CacheDecision.revalidate(index: 0, headers: plainTag)
  private static let reload: HeaderFields = ["pragma": "no-cache", "cache-control": "no-cache"]
  private static let zero: HeaderFields = ["cache-control": "max-age=0"]
  private static let zeroAndTag: HeaderFields = ["cache-control": "max-age=0", "if-none-match": "\"a\""]

  static let modes = [
    Case(said: maxAge, after: 0, decision: fresh),
    Case(said: maxAge, after: 59, decision: fresh),
    Case(said: maxAge, after: 60, decision: revalidate),
    Case(said: ["cache-control": "max-age=60"], after: 60, decision: fetch),
    Case(
      said: ["cache-control": "max-age=1", "etag": "W/\"a\"", "last-modified": "Sun, 06 Nov 1994 08:49:37 GMT"],
      after: 9,
      decision: .revalidate(
        index: 0,
        headers: ["if-none-match": "W/\"a\"", "if-modified-since": "Sun, 06 Nov 1994 08:49:37 GMT"])),
    Case(said: maxAge, mode: .noStore, after: 0, decision: .fetch(headers: reload)),
    Case(said: maxAge, mode: .reload, after: 0, decision: .fetch(headers: reload)),
    Case(
      said: maxAge, mode: .reload, asked: ["cache-control": "max-age=5"], after: 0,
      decision: .fetch(headers: ["pragma": "no-cache"])),
    Case(
      said: maxAge, mode: .reload, asked: ["pragma": "x"], after: 0,
      decision: .fetch(headers: ["cache-control": "no-cache"])),
    Case(said: maxAge, mode: .noCache, after: 0, decision: .revalidate(index: 0, headers: zeroAndTag)),
    Case(
      said: maxAge, mode: .noCache, asked: ["cache-control": "max-age=5"], after: 0, decision: revalidate),
    Case(said: ["cache-control": "max-age=60"], mode: .noCache, after: 0, decision: .fetch(headers: zero)),
    Case(said: maxAge, mode: .forceCache, after: 0, decision: fresh),
    Case(said: maxAge, mode: .forceCache, after: 604_799, decision: stale),
    Case(said: maxAge, mode: .forceCache, after: 604_800, decision: revalidate),
    Case(said: ["cache-control": "no-cache"], mode: .forceCache, after: 9, decision: stale),
    Case(said: maxAge, mode: .onlyIfCached, after: 0, decision: fresh),
    Case(said: maxAge, mode: .onlyIfCached, after: 604_799, decision: stale),
    Case(said: maxAge, mode: .onlyIfCached, after: 604_800, decision: .notCached),
    Case(
      said: maxAge, mode: .refresh, after: 0,
      decision: .showThenRevalidate(index: 0, isFresh: true, headers: zeroAndTag)),
    Case(
      said: maxAge, mode: .refresh, after: 99,
      decision: .showThenRevalidate(index: 0, isFresh: false, headers: zeroAndTag)),
    Case(
      said: ["cache-control": "max-age=60"], mode: .refresh, after: 99,
      decision: .showThenRevalidate(index: 0, isFresh: false, headers: zero)),
    Case(said: maxAge, mode: .refresh, after: 604_800, decision: .revalidate(index: 0, headers: zeroAndTag)),
    Case(said: ["cache-control": "max-age=60, immutable"], mode: .refresh, after: 9, decision: fresh),
    Case(
      said: ["cache-control": "max-age=60, immutable"], mode: .refresh, after: 60,
      decision: .showThenRevalidate(index: 0, isFresh: false, headers: zero)),
    Case(said: ["cache-control": "max-age=60, immutable"], after: 60, decision: fetch),
  ]

  static let requestDirectives = [
    Case(said: maxAge, asked: ["cache-control": "no-cache"], after: 0, decision: revalidate),
    Case(said: maxAge, asked: ["pragma": "no-cache"], after: 0, decision: revalidate),
    Case(said: maxAge, asked: ["pragma": "no-cache", "cache-control": "x"], after: 0, decision: fresh),
    Case(said: maxAge, asked: ["cache-control": "no-store"], after: 0, decision: fresh),
    Case(said: maxAge, asked: ["cache-control": "max-age=0"], after: 0, decision: revalidate),
    Case(said: maxAge, asked: ["cache-control": "max-age=5"], after: 5, decision: fresh),
    Case(said: maxAge, asked: ["cache-control": "max-age=5"], after: 6, decision: revalidate),
    Case(said: maxAge, asked: ["cache-control": "min-fresh=10"], after: 50, decision: fresh),
    Case(said: maxAge, asked: ["cache-control": "min-fresh=10"], after: 51, decision: revalidate),
    Case(said: maxAge, asked: ["cache-control": "max-stale"], after: 600_000, decision: stale),
    Case(said: maxAge, asked: ["cache-control": "max-stale"], after: 604_800, decision: revalidate),
    Case(said: maxAge, asked: ["cache-control": "max-stale=10"], after: 70, decision: stale),
    Case(said: maxAge, asked: ["cache-control": "max-stale=10"], after: 71, decision: revalidate),
    Case(said: maxAge, asked: ["cache-control": "max-stale=10, min-fresh=1"], after: 65, decision: revalidate),
    Case(said: maxAge, asked: ["cache-control": "max-stale=x"], after: 65, decision: revalidate),
    Case(
      said: ["cache-control": "max-age=60, must-revalidate"], asked: ["cache-control": "max-stale"], after: 70,
      decision: fetch),
    Case(said: maxAge, asked: ["cache-control": "only-if-cached"], after: 0, decision: fresh),
    Case(said: maxAge, asked: ["cache-control": "only-if-cached"], after: 60, decision: .notCached),
    Case(said: maxAge, asked: ["cache-control": "only-if-cached, max-stale"], after: 60, decision: stale),
    Case(said: maxAge, asked: ["if-none-match": "\"x\""], after: 0, decision: .fetch(headers: reload)),
    Case(said: maxAge, mode: .noCache, asked: ["if-modified-since": "x"], after: 0, decision: .fetch(headers: zero)),
    Case(said: maxAge, mode: .reload, asked: ["if-none-match": "x"], after: 0, decision: .fetch(headers: reload)),
    Case(said: maxAge, mode: .refresh, asked: ["if-none-match": "x"], after: 0, decision: .fetch(headers: zero)),
    Case(said: maxAge, mode: .onlyIfCached, asked: ["if-none-match": "x"], after: 99, decision: stale),
    Case(said: maxAge, mode: .forceCache, asked: ["if-none-match": "\"x\""], after: 99, decision: stale),
    Case(said: maxAge, mode: .forceCache, asked: ["if-none-match": "\"x\""], after: 604_800, decision: fetch),
    Case(said: maxAge, asked: ["range": "bytes=0-1"], after: 0, decision: fetch),
    Case(said: maxAge, mode: .onlyIfCached, asked: ["range": "bytes=0-1"], after: 0, decision: .notCached),
    Case(
      said: maxAge, asked: ["cache-control": "only-if-cached", "range": "bytes=0-1"], after: 0, decision: .notCached),
    Case(
      said: maxAge, asked: ["cache-control": "only-if-cached", "if-none-match": "\"x\""], after: 0,
      decision: .notCached),
  ]

  static let lifetimes = [
    Case(said: ["cache-control": "max-age=60", "expires": "0"], after: 9, decision: fresh),
    Case(said: ["cache-control": "max-age=0", "expires": date(99)], after: 0, decision: fetch),
    Case(said: ["cache-control": "s-maxage=60, max-age=1"], after: 2, decision: fetch),
    Case(said: ["cache-control": "no-cache, max-age=60"], after: 0, decision: fetch),
    Case(said: ["cache-control": "no-cache=\"set-cookie\", max-age=60"], after: 0, decision: fetch),
    Case(said: ["cache-control": "max-age=60", "age": "59"], after: 0, decision: fresh),
    Case(said: ["cache-control": "max-age=60", "age": "60"], after: 0, decision: fetch),
    Case(said: ["cache-control": "max-age=60", "age": "1, 900"], after: 0, decision: fresh),
    Case(said: ["cache-control": "max-age=60", "age": "900, 1"], after: 0, decision: fetch),
    Case(said: ["cache-control": "max-age=60", "age": "-900"], after: 0, decision: fresh),
    Case(said: ["cache-control": "max-age=60", "age": "900.0"], after: 0, decision: fresh),
    Case(said: ["cache-control": "max-age=60", "age": "99999999999999999999999"], after: 0, decision: fetch),
    Case(said: ["cache-control": "max-age=60", "date": date(-60)], after: 0, decision: fetch),
    Case(said: ["cache-control": "max-age=60", "date": date(500)], after: 59, decision: fresh),
    Case(said: ["expires": date(60)], after: 59, decision: fresh),
    Case(said: ["expires": date(60)], after: 60, decision: fetch),
    Case(said: ["expires": date(60), "date": "foo"], after: 59, decision: fresh),
    Case(said: ["expires": date(60), "date": date(60)], after: 0, decision: fetch),
    Case(said: ["expires": "0"], after: 0, decision: fetch),
    Case(said: ["expires": "Fri, 31 Dec 9999 23:59:59 GMT"], after: 604_799, decision: fresh),
    Case(said: ["last-modified": date(-1000)], after: 99, decision: fresh),
    Case(
      said: ["last-modified": date(-1000)], after: 100,
      decision: .revalidate(index: 0, headers: ["if-modified-since": date(-1000)])),
    Case(said: ["last-modified": "Sun, 06 Nov 1994 08:49:37 GMT"], after: 604_799, decision: fresh),
    Case(
      said: ["last-modified": "Sun, 06 Nov 1994 08:49:37 GMT"], after: 604_800,
      decision: .revalidate(index: 0, headers: ["if-modified-since": "Sun, 06 Nov 1994 08:49:37 GMT"])),
    Case(
      said: ["last-modified": date(1000)], after: 0,
      decision: .revalidate(index: 0, headers: ["if-modified-since": date(1000)])),
    Case(said: [:], after: 0, decision: fetch),
    Case(said: ["cache-control": "max-age=99999999999999999999"], after: 604_799, decision: fresh),
    Case(said: ["cache-control": "max-age=99999999999999999999"], after: 604_800, decision: fetch),
  ]

  static let staleWhileRevalidate = [
    Case(
      said: ["cache-control": "max-age=60, stale-while-revalidate=30", "etag": "\"a\""], after: 60,
      decision: .serveThenRevalidate(index: 0, headers: plainTag)),
    Case(
      said: ["cache-control": "max-age=60, stale-while-revalidate=30"], after: 90,
      decision: .serveThenRevalidate(index: 0, headers: [:])),
    Case(said: ["cache-control": "max-age=60, stale-while-revalidate=30"], after: 91, decision: fetch),
    Case(said: ["cache-control": "max-age=60, stale-while-revalidate=30, must-revalidate"], after: 61, decision: fetch),
    Case(said: ["cache-control": "no-cache, stale-while-revalidate=30"], after: 0, decision: fetch),
    Case(
      said: ["cache-control": "max-age=60, stale-while-revalidate=999999999"], after: 604_800, decision: fetch),
    Case(
      said: ["cache-control": "max-age=60, stale-while-revalidate=30"], asked: ["cache-control": "max-age=99"],
      after: 61, decision: fetch),
    Case(
      said: ["cache-control": "max-age=60, stale-while-revalidate=30"], mode: .noCache, after: 61,
      decision: .fetch(headers: zero)),
  ]

  static let clocks = [
    Case(said: maxAge, after: -60, decision: fresh),
    Case(said: maxAge, after: -61, decision: revalidate),
    Case(said: ["cache-control": "max-age=0"], after: -1, decision: fetch),
    Case(said: maxAge, mode: .onlyIfCached, after: -61, decision: .notCached),
    Case(said: maxAge, mode: .forceCache, after: .min / 2, decision: revalidate),
    Case(said: maxAge, after: .max / 2, decision: revalidate),
  ]

  @Test(arguments: modes + requestDirectives + lifetimes + staleWhileRevalidate + clocks)
  func `the server's fields decide`(_ expected: Case) {
    let decision = policy.decide(
      mode: expected.mode, requestHeaders: expected.asked, stored: [response(expected.said)],
      now: stored + expected.after)
    #expect(decision == expected.decision)
  }

  @Test(arguments: CacheMode.allCases) func `nothing is served if nothing is stored`(mode: CacheMode) {
    let decision = policy.decide(mode: mode, requestHeaders: [:], stored: [], now: stored)
    let expected: CacheDecision =
      switch mode {
      case .default, .forceCache: Self.fetch
      case .noStore, .reload: .fetch(headers: Self.reload)
      case .noCache, .refresh: .fetch(headers: Self.zero)
      case .onlyIfCached: .notCached
      }
    #expect(decision == expected)
  }

  @Test func `the duration of the request counts as age`() {
    var slow = response(["cache-control": "max-age=60", "age": "50"])
    slow.requestTime = stored - 10
    #expect(policy.decide(mode: .default, requestHeaders: [:], stored: [slow], now: stored) == Self.fetch)
  }

  @Test(arguments: modes + lifetimes + staleWhileRevalidate + clocks)
  func `a plainly fresh response is one that the decision serves as fresh`(_ expected: Case) {
    guard [.default, .forceCache, .onlyIfCached].contains(expected.mode), expected.asked.isEmpty else { return }
    let isFresh = isPlainlyFresh(response(expected.said), now: stored + expected.after)
    #expect(isFresh == (expected.decision == Self.fresh))
  }

  @Test func `a lowered max-age applies at once to a response that was fresh`() {
    let lower = CachePolicy(maxAge: 30)
    #expect(isPlainlyFresh(response(Self.maxAge), now: stored + 29, by: lower))
    #expect(!isPlainlyFresh(response(Self.maxAge), now: stored + 30, by: lower))
  }

  @Test func `responses that vary and requests with cache directives are not plain`() {
    #expect(!isPlainlyFresh(response(["cache-control": "max-age=60", "vary": "accept"]), now: stored))
    #expect(CachePolicy.isPlain(["accept": "image/*", "user-agent": "x"]))
    for name in ["cache-control", "pragma", "range", "if-none-match", "if-range", "if-match"] {
      #expect(!CachePolicy.isPlain(HeaderFields([HeaderField(name, "x")])))
    }
  }

  /// - Parameter policy: the current policy; `freshUntil` was computed by the usual one.
  private func isPlainlyFresh(_ response: CachedResponse, now: Int, by current: CachePolicy? = nil) -> Bool {
    (current ?? policy).isPlainlyFresh(
      freshUntil: policy.freshUntil(response), headers: response.headers, responseTime: response.responseTime, now: now)
  }

  @Test func `hostile times and limits never trap`() {
    for time in [Int.min, -1, 0, 1, .max] {
      for maxAge in [Int.min, -1, 0, 1, .max] {
        var entry = response([
          "cache-control": "max-age=99999999999, stale-while-revalidate=99999999999", "age": "9999999999",
        ])
        (entry.requestTime, entry.responseTime) = (0 &- time, time)
        let policy = CachePolicy(maxAge: maxAge)
        for now in [Int.min, 0, .max] {
          for mode in CacheMode.allCases {
            let decision = policy.decide(
              mode: mode, requestHeaders: ["cache-control": "max-stale"], stored: [entry], now: now)
            if maxAge <= 0 { #expect(decision != Self.fresh && decision != Self.stale) }
          }
          #expect(!policy.explain(entry, now: now).isEmpty)
        }
      }
    }
  }
}

@Suite struct `Stale on errors` {
  static let cases: [(said: String, mode: CacheMode, asked: HeaderFields, failure: Int?, after: Int, served: Bool)] = [
    ("max-age=60, stale-if-error=30", .default, [:], 503, 90, true),
    ("max-age=60, stale-if-error=30", .default, [:], nil, 90, true),
    ("max-age=60, stale-if-error=30", .default, [:], 500, 90, true),
    ("max-age=60, stale-if-error=30", .default, [:], 404, 90, false),
    ("max-age=60, stale-if-error=30", .default, [:], 501, 90, false),
    ("max-age=60, stale-if-error=30", .default, [:], nil, 91, false),
    ("max-age=60", .default, [:], nil, 61, false),
    ("max-age=60", .default, ["cache-control": "stale-if-error=30"], nil, 61, true),
    ("max-age=60, stale-if-error=30, must-revalidate", .default, [:], nil, 61, false),
    ("no-cache, stale-if-error=30", .default, [:], nil, 1, false),
    ("max-age=60, stale-if-error=30", .noCache, [:], nil, 61, false),
    ("max-age=60, stale-if-error=30", .refresh, [:], nil, 61, false),
    ("max-age=60, stale-if-error=30", .default, ["cache-control": "no-cache"], nil, 61, false),
    ("max-age=60, stale-if-error=30", .default, ["if-match": "x"], nil, 61, false),
    ("max-age=60, stale-if-error=99999999", .default, [:], nil, 604_799, true),
    ("max-age=60, stale-if-error=99999999", .default, [:], nil, 604_800, false),
  ]

  @Test(arguments: cases)
  func `a stale response replaces an error only if the server allows it`(
    said: String, mode: CacheMode, asked: HeaderFields, failure: Int?, after: Int, served: Bool
  ) {
    let decision = policy.mayServeOnError(
      response(["cache-control": said]), mode: mode, requestHeaders: asked, failure: failure, now: stored + after)
    #expect(decision == served)
  }
}

@Suite struct `Explanations` {
  static let cases: [(said: HeaderFields, after: Int, words: [String])] = [
    (["cache-control": "max-age=60"], 12, ["fresh", "max-age=60", "age 12 s"]),
    (["cache-control": "max-age=60, stale-if-error=60"], 75, ["stale", "max-age=60", "age 75 s", "stale-if-error"]),
    (["cache-control": "no-cache"], 0, ["stale", "no-cache"]),
    (["expires": date(60)], 1, ["fresh", "Expires", "60 s"]),
    (["expires": "-1"], 1, ["stale", "Expires is invalid"]),
    (["last-modified": date(-1000)], 1, ["fresh", "Last-Modified", "100 s"]),
    ([:], 1, ["stale", "no Cache-Control"]),
    (["cache-control": "max-age=99999999"], 604_800, ["stale", "more than max-age (604800 s)"]),
    (["cache-control": "max-age=60"], -90, ["stale", "future"]),
    (["cache-control": "max-age=60, must-revalidate"], 61, ["must-revalidate"]),
    (["cache-control": "max-age=60, immutable"], 1, ["immutable"]),
  ]

  @Test(arguments: cases) func `query can explain a decision`(said: HeaderFields, after: Int, words: [String]) {
    let text = policy.explain(response(said), now: stored + after)
    for word in words { #expect(text.contains(word), "\(text)") }
  }
}
