import Testing
import Text

struct NearestNameTests {
  private let names = ["url", "key", "priority", "timeoutMs", "maxPerHost", "client", "params"]

  @Test(arguments: [
    ("urll", "url"), ("ulr", "url"), ("parms", "params"), ("prioirty", "priority"), ("timeout", "timeoutMs"),
    ("max-per-host", "maxPerHost"), ("MAX_PER_HOST", "maxPerHost"), ("clientInfo", "client"), ("kye", "key"),
  ])
  func `a misspelled name is near the name that was meant`(misspelled: String, meant: String) {
    #expect(names.nearest(to: misspelled) == meant)
  }

  @Test(arguments: ["", "x", "fetch", "u", "transform", String(repeating: "url", count: 1000)])
  func `no name is near another word`(word: String) {
    #expect(names.nearest(to: word) == nil)
  }

  @Test func `a hint has the nearest name, or else all names`() {
    #expect(hint(for: "urll", among: names) == " (did you mean url?)")
    #expect(hint(for: "fetch", among: ["url", "key"]) == " (known: url, key)")
  }
}
