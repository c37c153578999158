import Testing

@testable import Recording

@Suite struct PlaceholderTests {
  @Test func `equal secrets have equal placeholders, which stand for themselves`() {
    var placeholders = Placeholders()
    #expect(placeholders.placeholder(for: "a") == "redacted-1")
    #expect(placeholders.placeholder(for: "b") == "redacted-2")
    #expect(placeholders.placeholder(for: "a") == "redacted-1")
    #expect(placeholders.placeholder(for: "redacted-2") == "redacted-2")
    #expect(placeholders.placeholder(for: "redacted-x") == "redacted-3")
    #expect(placeholders.placeholder(for: "") == "")
  }
}
