import HTTPCaching
import HTTPTypes
import Testing

private let now = 1_795_260_409
private let date = HTTPDate.format(now)
private let url = "http://h/a.png"

/// Creation and completion of a partial response.
@Suite struct PartialResponseTests {
  private static let headers: HeaderFields = [
    "etag": "\"a\"", "date": date, "content-type": "image/png", "content-length": "1000", "cache-control": "max-age=60",
    "age": "7", "connection": "close",
  ]

  private func beginning(
    status: Int = 200, _ headers: HeaderFields = headers, request: HeaderFields = [:], length: Int64? = 1000
  ) -> PartialResponse? {
    PartialResponse(
      status: status, headers: headers, url: url, contentLength: length, requestHeaders: request, receivedAt: now)
  }

  // MARK: - Creation

  @Test func `the rest is requested with a strong entity tag`() throws {
    let partial = try #require(beginning())
    #expect(partial.requestFields(from: 400) == ["range": "bytes=400-", "if-range": "\"a\""])
    #expect(partial.headers["connection"] == nil)
    #expect([0, 1, 999, 1000, 1001].map { partial.hasRest(after: $0) } == [false, true, true, false, false])
  }

  @Test func `without an entity tag the rest is requested with a strong date`() throws {
    let then = HTTPDate.format(now - 60)
    #expect(try #require(beginning(["date": date, "last-modified": then])).requestFields(from: 1)["if-range"] == then)
  }

  static let startOver: [(String, HeaderFields)] = [
    ("nothing", ["date": date]), ("a weak tag", ["etag": "W/\"a\"", "date": date]),
    (
      "a weak tag beside a strong date", ["etag": "W/\"a\"", "date": date, "last-modified": HTTPDate.format(now - 600)]
    ),
    ("a tag without quotes", ["etag": "a"]), ("half a tag", ["etag": "\""]),
    ("a tag that does not end", ["etag": "\"a"]),
    ("two tags", ["etag": "\"a\", \"b\""]), ("a tag with a line break", ["etag": "\"a\r\nb\""]),
    ("a date of just now", ["date": date, "last-modified": date]),
    ("a date of a minute less a second", ["date": date, "last-modified": HTTPDate.format(now - 59)]),
    ("a date and no Date", ["last-modified": HTTPDate.format(now - 600)]),
    ("a content coding", headers.with("content-encoding", "gzip")),
    ("several content codings", headers.with("content-encoding", "identity, br")),
    ("no ranges", headers.with("accept-ranges", "none")), ("a range", headers.with("content-range", "bytes 0-9/1000")),
  ]

  @Test(arguments: startOver) func `a response without a reliable validator starts over`(
    what: String, headers: HeaderFields
  ) {
    #expect(beginning(headers) == nil, "\(what)")
  }

  @Test(arguments: [201, 203, 206, 304, 404]) func `only a 200 can be resumed`(status: Int) {
    #expect(beginning(status: status) == nil)
  }

  @Test(arguments: ["range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since"])
  func `a request with its own range or conditions is not resumed`(name: String) {
    #expect(beginning(request: [name: "x"]) == nil)
  }

  @Test func `identity is not a content coding, and another range unit does not refuse ranges`() {
    #expect(beginning(Self.headers.with("content-encoding", "identity").with("accept-ranges", "bytes")) != nil)
  }

  // MARK: - Completion

  private func answer(
    _ status: Int = 206, _ change: HeaderFields = [:], range: String? = "bytes 400-999/1000", from: String = url,
    length: Int64? = 600, known: Int64? = 1000
  ) throws -> PartialResponse.Answer {
    var headers: HeaderFields = ["date": HTTPDate.format(now + 5), "content-length": "600"]
    if change["etag"] == nil { headers.append("etag", "\"a\"") }
    if let range { headers.append("content-range", range) }
    for line in change.lines { headers.append(line.name, line.value) }
    return try #require(beginning(length: known)).answer(
      status: status, headers: headers, from: from, contentLength: length, offset: 400, receivedAt: now + 6)
  }

  @Test func `the whole has the fields of both responses, and the whole length`() throws {
    guard case .rest(let whole) = try answer(206, ["etag": "\"a\"", "cache-control": "max-age=9", "x-new": "1"]) else {
      Issue.record("it is the rest"); return
    }
    #expect(whole.completeLength == 1000)
    #expect(whole.validator == "\"a\"")
    #expect(whole.headers["content-length"] == "1000")
    #expect(whole.headers["content-range"] == nil)
    #expect(whole.headers["age"] == nil)
    #expect(whole.headers["cache-control"] == "max-age=9")
    #expect(whole.headers["x-new"] == "1")
    #expect(whole.headers["content-type"] == "image/png")
    #expect(whole.headers["date"] == HTTPDate.format(now + 5))
  }

  static let fitting: [(range: String, length: Int64?, known: Int64?)] = [
    ("bytes 400-999/1000", 600, 1000), ("bytes 400-999/1000", nil, 1000), ("bytes 400-999/1000", 600, nil),
    ("bytes 400-999/*", 600, 1000), ("bytes 400-1999/2000", nil, nil),
  ]

  @Test(arguments: fitting) func `one known length is enough`(range: String, length: Int64?, known: Int64?) throws {
    guard case .rest(let whole) = try answer(range: range, length: length, known: known) else {
      Issue.record("it is the rest"); return
    }
    #expect(whole.completeLength == (range.hasSuffix("2000") ? 2000 : 1000))
  }

  static let misfits: [(what: String, range: String?, length: Int64?, known: Int64?, change: HeaderFields)] = [
    ("another start", "bytes 399-999/1000", 601, 1000, [:]), ("a later start", "bytes 401-999/1000", 599, 1000, [:]),
    ("another length", "bytes 400-1099/1100", 700, 1000, [:]), ("an earlier end", "bytes 400-998/1000", 599, 1000, [:]),
    ("no length at all", "bytes 400-999/*", 600, nil, [:]),
    ("a body of another length", "bytes 400-999/1000", 601, 1000, [:]),
    ("no range", nil, 600, 1000, [:]), ("no range of bytes", "pages 400-999/1000", 600, 1000, [:]),
    ("two ranges", "bytes 400-999/1000", 600, 1000, ["content-range": "bytes 400-999/1000"]),
    ("several parts", nil, 700, 1000, ["content-type": "Multipart/Byteranges; boundary=x"]),
    ("parts with a range", "bytes 400-999/1000", 600, 1000, ["content-type": "multipart/byteranges; boundary=x"]),
    ("another tag", "bytes 400-999/1000", 600, 1000, ["etag": "\"b\""]),
    ("a weak tag", "bytes 400-999/1000", 600, 1000, ["etag": "W/\"a\""]),
    ("no tag", "bytes 400-999/1000", 600, 1000, ["etag": ""]),
    ("a date that there was not", "bytes 400-999/1000", 600, 1000, ["last-modified": date]),
    ("a content coding", "bytes 400-999/1000", 600, 1000, ["content-encoding": "gzip"]),
  ]

  @Test(arguments: misfits) func `a part that does not match is refused`(
    what: String, range: String?, length: Int64?, known: Int64?, change: HeaderFields
  ) throws {
    #expect(try answer(206, change, range: range, length: length, known: known) == .rangeMismatch, "\(what)")
  }

  @Test func `a part from another URL is refused`() throws {
    #expect(try answer(from: "http://h/b.png") == .rangeMismatch)
  }

  @Test func `a date must not change, and a part must not have a new entity tag`() throws {
    let then = HTTPDate.format(now - 600)
    let dated = try #require(beginning(["date": date, "last-modified": then]))
    func answer(_ change: HeaderFields) -> PartialResponse.Answer {
      dated.answer(
        status: 206, headers: change.with("content-range", "bytes 4-999/1000"), from: url, contentLength: nil,
        offset: 4,
        receivedAt: now)
    }
    guard case .rest = answer(["last-modified": then]), case .rest = answer([:]) else {
      Issue.record("it is the rest"); return
    }
    #expect(answer(["last-modified": HTTPDate.format(now - 599)]) == .rangeMismatch)
    #expect(answer(["last-modified": then, "etag": "\"a\""]) == .rangeMismatch)
  }

  @Test func `any other answer is a whole, or a mismatch that says nothing about the whole`() throws {
    for status in [200, 203, 204] { #expect(try answer(status) == .whole) }
    for status in [301, 304, 401, 404, 412, 416, 429, 500, 503] { #expect(try answer(status) == .rangeMismatch) }
  }
}

extension HeaderFields {
  fileprivate func with(_ name: String, _ value: String) -> HeaderFields {
    var fields = self
    fields.append(name, value)
    return fields
  }
}
