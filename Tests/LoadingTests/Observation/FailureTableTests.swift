import Testing

@testable import Loading

/// The failures by kind, with the latest example of each.
struct FailureTableTests {
  private func http(_ status: Int) -> LoadError {
    var error = LoadError(.http, "the server answered \(status)")
    error.status = status
    return error
  }

  @Test func `each kind has its count and its latest example, the most frequent first`() {
    var table = FailureTable()
    table.add(.timeout(.idle, "b stopped sending"), url: "http://b/1.png", at: 100)
    table.add(http(404), url: "http://a/1.png", at: 101)
    table.add(http(410), url: "http://a/2.png", at: 102)
    #expect(table.all.map(\.kind) == [.http, .timeout])
    #expect(table.all.map(\.count) == [2, 1])
    #expect(
      table.all.map(\.latest) == [
        FailureTable.Example(url: "http://a/2.png", message: "the server answered 410", status: 410, time: 102),
        FailureTable.Example(url: "http://b/1.png", message: "b stopped sending", phase: .idle, time: 100),
      ])
  }

  @Test func `kinds with the same count are in the order of their names`() {
    var table = FailureTable()
    for kind in [LoadError.Kind.tls, .connect, .resolve] { table.add(LoadError(kind, ""), url: "http://a/", at: 1) }
    #expect(table.all.map(\.kind) == [.connect, .resolve, .tls])
  }

  @Test func `cancelled loads do not count`() {
    var table = FailureTable()
    table.add(LoadError(.cancelled, "cancelled"), url: "http://a/1.png", at: 1)
    #expect(table.all.isEmpty)
  }

  @Test(arguments: [
    ("http://ann:secret@a/1.png?token=secret#secret", "http://a/1.png"),
    ("ftp://ann:secret@a/1.png?token=secret", "a/1.png"),
    ("not a url?secret", "not a url"),
    ("data:image/png;base64", "data:image/png;base64"),
  ]) func `an example has no secrets`(url: String, shown: String) {
    var table = FailureTable()
    table.add(http(404), url: url, at: 1)
    #expect(table.all.first?.latest.url == shown)
  }

  @Test func `long texts are cut`() throws {
    var table = FailureTable()
    let url = "http://a/\(String(repeating: "u", count: 8000))"
    table.add(LoadError(.io, String(repeating: "m", count: 9000)), url: url, at: 1)
    let latest = try #require(table.all.first?.latest)
    #expect(latest.url.utf8.count == 503 && latest.message.utf8.count == 503)
  }
}
