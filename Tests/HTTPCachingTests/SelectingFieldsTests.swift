import HTTPTypes
import Testing

@testable import HTTPCaching

/// Equality of requests in what they select among stored responses.
struct SelectingFieldsTests {
  private func stored(vary: String...) -> CachedResponse {
    CachedResponse(
      headers: HeaderFields(vary.map { HeaderField("vary", $0) }), requestTime: 1_000_000, responseTime: 1_000_000)
  }

  @Test func `fields that no Vary names do not matter`() {
    let plain = [stored()]
    let selection = SelectingFields(of: ["accept": "image/webp"], among: plain)
    #expect(selection != nil)
    #expect(selection == SelectingFields(of: ["accept": "image/png", "x-screen": "2"], among: plain))
    #expect(selection == SelectingFields(of: [:], among: plain))
  }

  @Test func `fields that a Vary names matter, and so does their absence`() {
    let varying = [stored(vary: "Accept, X-Screen")]
    let selection = SelectingFields(of: ["accept": "image/webp", "x-other": "1"], among: varying)
    #expect(selection == SelectingFields(of: ["x-other": "2", "accept": "image/webp"], among: varying))
    #expect(selection != SelectingFields(of: ["accept": "image/png"], among: varying))
    #expect(selection != SelectingFields(of: [:], among: varying))
    #expect(selection != SelectingFields(of: ["accept": "image/webp", "x-screen": "2"], among: varying))
    #expect(SelectingFields(of: ["accept": ""], among: varying) != SelectingFields(of: [:], among: varying))
  }

  @Test func `the notation of a list does not matter`() {
    let varying = [stored(vary: "accept")]
    #expect(
      SelectingFields(of: ["accept": "a,b"], among: varying)
        == SelectingFields(of: HeaderFields([HeaderField("accept", "a"), HeaderField("accept", "b")]), among: varying))
  }

  @Test func `case does not matter if the field's definition says so`() {
    let varying = [stored(vary: "accept-language, accept")]
    #expect(
      SelectingFields(of: ["accept-language": "de-CH"], among: varying)
        == SelectingFields(of: ["accept-language": "de-ch"], among: varying))
    #expect(
      SelectingFields(of: ["accept": "A"], among: varying) != SelectingFields(of: ["accept": "a"], among: varying))
  }

  @Test func `the names in the Vary of all stored responses count`() {
    let both = [stored(vary: "accept"), stored(vary: "x-screen", "accept")]
    #expect(SelectingFields(of: ["x-screen": "1"], among: both) != SelectingFields(of: ["x-screen": "2"], among: both))
    #expect(SelectingFields(of: ["accept": "1"], among: both) != SelectingFields(of: ["accept": "2"], among: both))
    #expect(SelectingFields(of: ["x": "1"], among: both) == SelectingFields(of: ["x": "2"], among: both.reversed()))
  }

  @Test func `selections by different names differ though no request has the fields`() {
    #expect(SelectingFields(of: [:], among: [stored()]) != SelectingFields(of: [:], among: [stored(vary: "accept")]))
  }

  @Test func `there is no selection if nothing is stored or any field may matter`() {
    #expect(SelectingFields(of: ["accept": "image/webp"], among: []) == nil)
    #expect(SelectingFields(of: [:], among: [stored(vary: "*")]) == nil)
    #expect(SelectingFields(of: [:], among: [stored(), stored(vary: "accept", " * ")]) == nil)
  }

  @Test(arguments: [
    "cache-control", "if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "pragma",
    "range",
  ]) func `a field with a cache directive always matters`(name: String) {
    let plain = [stored()]
    var headers: HeaderFields = [:]
    headers.append(name, "1")
    #expect(SelectingFields(of: headers, among: plain) != SelectingFields(of: [:], among: plain))
  }
}
