import HTTPTypes
import Testing

@testable import HTTPCaching

/// Values are compared by their bytes: `\u{e9}` and `e\u{301}` look the same but differ.
@Suite struct ExactComparisonTests {
  private static let composed = "caf\u{e9}"
  private static let decomposed = "cafe\u{301}"

  private func stored(_ headers: HeaderFields, selecting: HeaderFields = [:]) -> CachedResponse {
    CachedResponse(headers: headers, selectingFields: selecting, requestTime: 0, responseTime: 0)
  }

  private static let selections: [(String, String, Bool)] = [
    (composed, composed, true),
    (composed, decomposed, false),
    ("a, b", "a ,b", true),
    ("a;x=\"1,2\"", "a;x=\"1, 2\"", false),
    ("a;x=\"1,2\"", "a;x=\"1,2\"", true),
  ]

  @Test(arguments: selections) func `fields that Vary names`(then: String, now: String, areSame: Bool) {
    let response = stored(["vary": "x-place"], selecting: ["x-place": then])
    #expect(Vary.matches(response, ["x-place": now]) == areSame)
  }

  @Test(arguments: [
    ("\"\(composed)\"", "\"\(composed)\"", true),
    ("\"\(composed)\"", "\"\(decomposed)\"", false),
    ("W/\"a\"", "\"a\"", true),
    ("W/\u{301}", "W/\u{301}", true),
  ]) func `entity tags of a 304`(known: String, told: String, areSame: Bool) {
    let updated = Validation.responsesUpdated(by: ["etag": told], in: [stored(["etag": known])], asked: 0)
    #expect(updated == (areSame ? [0] : []))
  }

  @Test func `entity tags of a part`() throws {
    let headers: HeaderFields = ["etag": "\"\(Self.composed)\""]
    let partial = try #require(
      PartialResponse(
        status: 200, headers: headers, url: "http://a/", contentLength: 10, requestHeaders: [:], receivedAt: 0))
    func answer(_ tag: String) -> PartialResponse.Answer {
      partial.answer(
        status: 206, headers: ["etag": tag, "content-range": "bytes 5-9/10"], from: "http://a/", contentLength: 5,
        offset: 5, receivedAt: 0)
    }
    #expect(answer("\"\(Self.decomposed)\"") == .rangeMismatch)
    guard case .rest = answer("\"\(Self.composed)\"") else {
      Issue.record("The same tag is the same")
      return
    }
  }
}
