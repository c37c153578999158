import HTTPTypes
import Testing

/// A small generator (SplitMix64), so that a failure can be repeated from its seed.
private struct Seeded: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }

  mutating func text(of pieces: [String], atMost count: Int) -> String {
    (0..<Int.random(in: 0...count, using: &self)).map { _ in pieces.randomElement(using: &self) ?? "" }.joined()
  }
}

@Suite struct `Random input` {
  private static let pieces = [
    "a", "B", "é", "日", "%", "%41", "%2f", "%zz", "/", "//", ".", "..", "/./", "/../", "?", "&", "=", "#", "@", ":",
    "[", "]", "::1", "\\", " ", "\"", "\u{7F}", "\n", "80", "65536", "x=1", "。", "\u{FFFD}", "xn--",
  ]

  @Test func `the sent URL and the cache key of an accepted URL parse to themselves`() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = Seeded(state: seed)
    let filter = QueryNameFilter(["x", "*a*"])
    var taken = 0
    for _ in 0..<10_000 {
      let start = ["", "http://", "http://h/", "https://h/a?"].randomElement(using: &random) ?? ""
      let text = start + random.text(of: Self.pieces, atMost: 10)
      guard let url = try? ResourceURL(text) else { continue }
      taken += 1
      #expect(url.requestURL.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "seed \(seed): \(text)")
      #expect(try ResourceURL(url.requestURL) == url, "seed \(seed): \(text)")
      for filter in [QueryNameFilter.none, filter] {
        let key = url.cacheKey(ignoring: filter)
        #expect(try ResourceURL(key).cacheKey(ignoring: filter) == key, "seed \(seed): \(text)")
      }
      #expect(!url.redacted.contains("@") || url.redacted.dropFirst(8).contains("/"), "seed \(seed): \(text)")
      #expect(url.requestTarget.hasPrefix("/"), "seed \(seed): \(text)")
    }
    #expect(taken > 1_000)
  }

  @Test func `dates and data URLs of random pieces never trap`() {
    var random = Seeded(state: .random(in: 0...UInt64.max))
    let dates = ["Sun", "Sunday", ", ", " ", "06", "6", "-", "Nov", "1994", "94", "08:49:37", " GMT", "\u{0}", "é"]
    let data = [";", ",", "base64", "=", "==", "QUJD", "%3D", "%", "#", " ", "\n", "é", "image/png"]
    for _ in 0..<20_000 {
      if let seconds = HTTPDate.parse(random.text(of: dates, atMost: 14), now: 0) {
        #expect(HTTPDate.parse(HTTPDate.format(seconds), now: 0) == seconds)
      }
      if let url = try? DataURL("data:" + random.text(of: data, atMost: 8)) { #expect(!url.mediaType.isEmpty) }
    }
  }
}
