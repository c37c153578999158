import HTTPCaching
import HTTPTypes
import Testing

private let now = 1_795_260_409

@Suite struct `What is stored` {
  static let answers: [(status: Int, headers: HeaderFields, stored: Bool)] = [
    (200, [:], true), (203, [:], true), (204, [:], true), (201, [:], false), (202, [:], false), (205, [:], false),
    (201, ["cache-control": "max-age=1"], true), (299, ["expires": "0"], true),
    (201, ["cache-control": "public"], true),
    (206, ["cache-control": "max-age=60"], false), (301, ["cache-control": "max-age=60"], false),
    (304, ["cache-control": "max-age=60"], false), (404, ["cache-control": "max-age=60"], false),
    (200, ["cache-control": "no-store"], false), (200, ["cache-control": "max-age=60, No-Store"], false),
    (200, ["cache-control": "private=\"x\", max-age=5"], true), (200, ["cache-control": "no-cache"], true),
    (200, ["cache-control": "no-store, must-understand"], true),
    (299, ["cache-control": "public, must-understand"], false),
    (200, ["vary": "*"], false), (200, ["vary": "accept, *"], false), (200, ["vary": "accept"], true),
  ]

  @Test(arguments: answers) func `complete successes are stored unless forbidden`(
    status: Int, headers: HeaderFields, stored: Bool
  ) {
    #expect(Storing.mayStore(mode: .default, requestHeaders: [:], status: status, headers: headers) == stored)
  }

  static let requests: [(mode: CacheMode, headers: HeaderFields, stored: Bool)] = [
    (.default, [:], true), (.reload, [:], true), (.noCache, [:], true), (.refresh, [:], true), (.forceCache, [:], true),
    (.noStore, [:], false), (.default, ["cache-control": "no-store"], false), (.default, ["range": "bytes=0-"], false),
    (.reload, ["range": "bytes=0-"], false), (.default, ["if-none-match": "x"], false),
    (.noCache, ["if-none-match": "x"], true), (.noStore, ["if-none-match": "x"], false),
    (.reload, ["if-none-match": "x"], true), (.default, ["authorization": "x"], true),
  ]

  @Test(arguments: requests) func `the request can forbid storing`(mode: CacheMode, headers: HeaderFields, stored: Bool)
  {
    #expect(Storing.mayStore(mode: mode, requestHeaders: headers, status: 200, headers: [:]) == stored)
  }

  static let asking: [(headers: HeaderFields, isForWhole: Bool)] = [
    ([:], true), (["cache-control": "no-cache", "accept": "image/png"], true), (["range": "bytes=0-1"], false),
    (["if-match": "x"], false), (["if-range": "x"], false),
  ]

  @Test(arguments: asking) func `a request is for the whole unless it has a range or conditions`(
    headers: HeaderFields, isForWhole: Bool
  ) {
    #expect(Storing.isForWhole(requestHeaders: headers) == isForWhole)
  }

  @Test func `fields of the connection are not stored, and a missing Date is added`() {
    let fields = Storing.fields(
      of: [
        "connection": "X-Hop, close", "x-hop": "1", "keep-alive": "1", "transfer-encoding": "chunked", "etag": "\"a\"",
      ],
      receivedAt: now)
    #expect(fields == ["etag": "\"a\"", "date": HTTPDate.format(now)])
    #expect(Storing.fields(of: ["date": "foo"], receivedAt: now) == ["date": "foo"])
  }

  @Test func `a long header is stored with the fields that caching needs and others up to the limit`() {
    let long = String(repeating: "x", count: 9000)
    var headers: HeaderFields = ["x-a": long, "x-b": long, "x-c": "short", "date": "d", "etag": "\"a\""]
    var kept = Storing.fields(of: headers, receivedAt: now)
    #expect(kept == ["x-a": long, "x-c": "short", "date": "d", "etag": "\"a\""])
    kept = Storing.fields(kept, updatedBy: ["x-d": long, "cache-control": "no-cache", "date": "e"], receivedAt: now)
    #expect(kept == ["x-a": long, "x-c": "short", "etag": "\"a\"", "cache-control": "no-cache", "date": "e"])
    #expect(Storing.mayStore(mode: .default, requestHeaders: [:], status: 200, headers: headers))
    headers.append("vary", long)
    #expect(Storing.mayStore(mode: .default, requestHeaders: [:], status: 200, headers: headers))
    headers.append("cache-control", long)
    #expect(!Storing.mayStore(mode: .default, requestHeaders: [:], status: 200, headers: headers))
  }

  @Test func `a 304 replaces fields except those that describe the bytes`() {
    var stored: HeaderFields = [
      "date": "Sun, 06 Nov 1994 08:49:37 GMT", "age": "500", "x-kept": "1", "cache-control": "max-age=1",
      "content-length": "36", "content-encoding": "gzip", "content-type": "image/png",
    ]
    stored.append("set-cookie", "a=1")
    stored.append("set-cookie", "b=1")
    var update: HeaderFields = [
      "cache-control": "max-age=9", "content-length": "0", "content-encoding": "br", "content-range": "x",
      "content-type": "image/gif", "connection": "x-hop", "x-hop": "1",
    ]
    update.append("set-cookie", "c=1")
    update.append("set-cookie", "d=1")
    let merged = Storing.fields(stored, updatedBy: update, receivedAt: now)
    #expect(merged["date"] == HTTPDate.format(now))
    #expect(merged["age"] == nil && merged["x-hop"] == nil && merged["content-range"] == nil)
    #expect(merged["x-kept"] == "1" && merged["cache-control"] == "max-age=9" && merged["content-type"] == "image/gif")
    #expect(merged["content-length"] == "36" && merged["content-encoding"] == "gzip")
    #expect(merged.values(of: "set-cookie") == ["c=1", "d=1"])
  }

  @Test func `a response from the cache has its Age`() {
    let cached = CachedResponse(
      headers: ["age": "10", "date": HTTPDate.format(now)], requestTime: now - 2, responseTime: now)
    #expect(Storing.fieldsToServe(cached, now: now + 5)["age"] == "17")
  }
}

@Suite struct `Validation by 304` {
  private static func stored(_ headers: HeaderFields...) -> [CachedResponse] {
    headers.map { CachedResponse(headers: $0, requestTime: now, responseTime: now) }
  }

  static let cases: [(notModified: HeaderFields, stored: [CachedResponse], asked: Int, updated: [Int])] = [
    ([:], stored(["etag": "\"a\""]), 0, [0]),
    (["etag": "\"a\""], stored(["etag": "\"a\""]), 0, [0]),
    (["etag": "\"b\""], stored(["etag": "\"a\""]), 0, []),
    (["etag": "\"b\""], stored(["etag": "\"a\""], ["etag": "\"b\""]), 0, [1]),
    (["etag": "\"a\""], stored(["etag": "\"a\""], ["etag": "\"a\""], ["etag": "W/\"a\""]), 1, [1, 0]),
    (["etag": "W/\"a\""], stored(["etag": "W/\"a\""], ["etag": "W/\"a\""]), 0, [0]),
    (["etag": "\"a\""], stored(["etag": "W/\"a\""]), 0, [0]),
    (["etag": "W/\"a\""], stored(["etag": "\"a\""]), 0, [0]),
    (["last-modified": "x"], stored(["last-modified": "x"]), 0, [0]),
    (["last-modified": "y"], stored(["last-modified": "x"]), 0, []),
    (["last-modified": "y"], stored(["etag": "\"a\""]), 0, [0]),
    (["etag": "\"a\""], [], 0, []),
  ]

  @Test(arguments: cases) func `a 304 updates the responses that it matches and no others`(
    notModified: HeaderFields, stored: [CachedResponse], asked: Int, updated: [Int]
  ) {
    #expect(Validation.responsesUpdated(by: notModified, in: stored, asked: asked) == updated)
  }

  static let validators: [(headers: HeaderFields, validator: String?)] = [
    (["etag": "\"a\""], "\"a\""), (["etag": "W/\"a\""], nil), (["etag": "a"], nil), ([:], nil),
    (
      ["last-modified": "Sun, 06 Nov 1994 08:48:37 GMT", "date": "Sun, 06 Nov 1994 08:49:37 GMT"],
      "Sun, 06 Nov 1994 08:48:37 GMT"
    ),
    (["last-modified": "Sun, 06 Nov 1994 08:48:38 GMT", "date": "Sun, 06 Nov 1994 08:49:37 GMT"], nil),
    (["last-modified": "Sun, 06 Nov 1994 08:48:37 GMT"], nil),
  ]

  @Test(arguments: validators) func `only a strong validator allows a transfer to be resumed`(
    headers: HeaderFields, validator: String?
  ) {
    #expect(Validation.strongValidator(of: headers, receivedAt: now) == validator)
  }
}

@Suite struct `Variants by Vary` {
  private static func variant(_ vary: String, _ then: HeaderFields, at time: Int = now) -> CachedResponse {
    let headers: HeaderFields = ["vary": vary, "cache-control": "max-age=60", "date": HTTPDate.format(time)]
    return CachedResponse(
      headers: headers, selectingFields: Vary.selectingFields(of: headers, from: then) ?? [:], requestTime: time,
      responseTime: time)
  }

  static let cases: [(stored: [CachedResponse], asked: HeaderFields, served: Int?)] = [
    ([variant("Accept", ["accept": "a"])], ["accept": "a"], 0),
    ([variant("Accept", ["accept": "a"])], ["accept": "b"], nil),
    ([variant("Accept", ["accept": "a"])], [:], nil),
    ([variant("Accept", [:])], [:], 0),
    ([variant("Accept", [:])], ["accept": "a"], nil),
    ([variant("*", [:])], [:], nil),
    ([variant("", [:])], ["accept": "a"], 0),
    ([variant("accept", ["accept": "a, b"])], ["accept": "a,  b"], 0),
    ([variant("accept", ["accept": "a, b"])], ["accept": "b, a"], nil),
    ([variant("accept", ["accept": "image/PNG"])], ["accept": "image/png"], nil),
    ([variant("accept-language", ["accept-language": "de-CH, en"])], ["accept-language": "de-ch,EN"], 0),
    ([variant("accept-language", ["accept-language": "de, en"])], ["accept-language": "en, de"], nil),
    ([variant("accept-encoding", ["accept-encoding": "gzip"])], ["accept-encoding": "GZip"], 0),
    ([variant("accept, x", ["accept": "a", "x": "1"])], ["accept": "a"], nil),
    ([variant("accept, ,X", ["accept": "a", "x": "1"])], ["x": "1", "accept": "a"], 0),
    ([variant("accept", ["accept": "a"]), variant("accept", ["accept": "b"])], ["accept": "b"], 1),
    ([variant("accept", ["accept": "a"], at: now - 1), variant("x", [:])], ["accept": "a"], 1),
    ([variant("x", [:]), variant("accept", ["accept": "a"], at: now - 1)], ["accept": "a"], 0),
  ]

  @Test(arguments: cases) func `the newest matching response is served`(
    stored: [CachedResponse], asked: HeaderFields, served: Int?
  ) {
    let decision = CachePolicy(maxAge: 600).decide(mode: .default, requestHeaders: asked, stored: stored, now: now)
    #expect(decision == served.map { .serve(index: $0, isFresh: true) } ?? .fetch(headers: [:]))
  }
}
