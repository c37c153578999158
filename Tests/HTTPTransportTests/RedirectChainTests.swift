import HTTPTypes
import Testing

@testable import HTTPTransport

@Suite struct RedirectChainTests {
  let headers: HeaderFields = ["x-secret": "1", "accept": "a/b", "if-none-match": "\"a\""]

  func redirectChain(from url: String, to locations: String..., validatedURL: String? = nil) throws -> RedirectChain {
    var redirectChain = try RedirectChain(TransferRequest(url, headers: headers, validatedURL: validatedURL))
    for location in locations { try redirectChain.follow(location) }
    return redirectChain
  }

  /// Curl parses `%31%32%37.1` as 127.1, and that as 127.0.0.1 when it connects.
  @Test(arguments: ["http://%31%32%37.1/x", "http://0x7f%2e1/", "//%32130706433/"])
  func `a host that changes when it is parsed again is malformed`(location: String) throws {
    let base = try Target(ResourceURL("http://example.com/"))
    #expect(throws: Target.Problem.self) { try Target(parsing: location, relativeTo: base) }
  }

  @Test(arguments: [
    ("https://a.example/x", "http://a.example/x"), ("http://a.example/", "https://a.example/"),
    ("http://a.example/", "http://a.example:8080/"), ("http://a.example/", "http://b.a.example/"),
    ("http://a.example/", "//b.example/"),
  ])
  func `another scheme, host or port is another origin`(from: String, to: String) throws {
    let fields = try redirectChain(from: from, to: to).fields
    #expect(fields["x-secret"] == nil)
    #expect(fields["accept"] == "a/b")
    #expect(fields["if-none-match"] == "\"a\"")
  }

  @Test(arguments: [
    ("http://a.example/", "http://A.Example:80/"), ("https://a.example/", "https://a.example:443/x"),
    ("http://a.example/x/y", "z"), ("http://a.example/x", "?q"), ("http://a.example/x", "//a.example/"),
    ("http://127.0.0.1/", "http://0x7f.1/"),
  ])
  func `the same origin may be spelled differently`(from: String, to: String) throws {
    #expect(try redirectChain(from: from, to: to).fields["x-secret"] == "1")
  }

  @Test func `dropped fields stay dropped after a redirect back`() throws {
    let redirectChain = try redirectChain(from: "http://a.example/", to: "http://b.example/", "http://a.example/")
    #expect(redirectChain.fields["x-secret"] == nil)
    #expect(redirectChain.redirects == 2)
  }

  @Test func `user information is sent only to the origin of its URL`() throws {
    let start = "http://me:pw@a.example/"
    #expect(try redirectChain(from: start).fields["authorization"] == "Basic bWU6cHc=")
    #expect(try redirectChain(from: start, to: "/x").fields["authorization"] == "Basic bWU6cHc=")
    #expect(try redirectChain(from: start, to: "http://b.example/").fields["authorization"] == nil)
    #expect(try redirectChain(from: start, to: "http://b.example/", start).fields["authorization"] == "Basic bWU6cHc=")
    #expect(try redirectChain(from: start, to: "http://you@b.example/").fields["authorization"] == "Basic eW91Og==")
    #expect(try !redirectChain(from: start, to: "http://you@b.example/").target.url.contains("you"))
  }

  @Test func `a request whose URL is the validated one is conditional, in any spelling`() throws {
    let fields = try redirectChain(from: "http://A.example:80#x", validatedURL: "http://a.example:80").fields
    #expect(fields["if-none-match"] == "\"a\"")
  }

  @Test(arguments: [("f", "Zjo="), ("fo", "Zm86"), ("foo", "Zm9vOg=="), ("%C3%A9", "w6k6")])
  func `user information is encoded as base64`(user: String, base64: String) throws {
    #expect(try Target(ResourceURL("http://\(user)@a.example/")).authorization == "Basic " + base64)
  }

  /// The worker sends a URL as written, and curl's parser must agree with it about the origin.
  @Test(arguments: [
    "http://a.example/x.png?w=1", "https://cdn.a-b.example:8443/a/b_c~d.webp", "http://127.0.0.1:8080/0/1.png",
    "http://A.example", "http://a.example:80/a/../b", "https://a.example:443/%41?", "http://b\u{fc}cher.example/\u{fc}",
    "http://me:pw%2b@a.example/[a]", "http://me@a.example/", "http://:pw@a.example/", "http://127.1/", "http://0x7f.1/",
    "http://[0:0::1]:81/", "http://1.example/", "http://a_b.example./?a=/../b",
  ])
  func `a URL has the same origin and credentials as in curl's parser`(text: String) throws {
    let url = try ResourceURL(text)
    let (sent, parsed) = (try Target(url), try Target(parsing: url.requestURL))
    #expect(sent.origin == parsed.origin)
    #expect(sent.authorization == parsed.authorization)
    #expect(try Target(parsing: sent.url).url == parsed.url)
  }
}
