import HTTPTypes
import Testing

@testable import HTTPTransport

@Suite struct RedirectChainTests {
  let headers: HeaderFields = [
    "x-secret": "1", "host": "h", "accept": "a/b", "x-own": "2", "referer": "https://r/", "if-none-match": "\"a\"",
  ]

  func redirectChain(from url: String, to locations: String..., validatedURL: String? = nil) throws -> RedirectChain {
    var redirectChain = try RedirectChain(TransferRequest(url, headers: headers, validatedURL: validatedURL))
    for location in locations { try redirectChain.follow(location) }
    return redirectChain
  }

  @Test(arguments: [
    ("https://a.example/x", "http://a.example/x"), ("http://a.example/", "https://b.example/"),
    ("http://a.example/", "http://a.example:8080/"), ("http://a.example/", "http://b.a.example/"),
    ("http://a.example/", "//b.example/"),
  ])
  func `another scheme, host or port is another origin`(from: String, to: String) throws {
    let fields = try redirectChain(from: from, to: to).fields
    #expect(fields["x-secret"] == nil)
    #expect(fields["host"] == nil)
    #expect(fields["accept"] == "a/b")
    #expect(fields["x-own"] == "2")
    #expect(fields["referer"] == (from.hasPrefix("https") ? nil : "https://r/"))
    #expect(fields["if-none-match"] == "\"a\"")
  }

  @Test(arguments: [
    ("http://a.example/", "https://a.example/"), ("http://me:pw@a.example:8080/", "https://A.example:8443/x"),
  ])
  func `https of the same host gets all fields`(from: String, to: String) throws {
    let fields = try redirectChain(from: from, to: to).fields
    #expect(fields["x-secret"] == "1" && fields["host"] == "h" && fields["referer"] == "https://r/")
    #expect(fields["authorization"] == (from.contains("@") ? "Basic bWU6cHc=" : nil))
    #expect(try redirectChain(from: from, to: to, from).fields["x-secret"] == nil, "the way back is a downgrade")
  }

  @Test(arguments: [
    "authorization", "proxy-authorization", "cookie", "x-api-key", "x-amz-security-token", "x-auth-request-email",
    "x-csrf-token", "private-token", "x-shopify-access-token", "x-session-id", "api-secret", "x-goog-iap-jwt-assertion",
    "signature-input",
  ])
  func `the name of a credential is recognised`(name: String) {
    #expect(RequestHeaders.withoutCredentials([name: "1"], isDowngrade: false).lines.isEmpty)
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
    #expect(Target(try ResourceURL("http://\(user)@a.example/")).authorization == "Basic " + base64)
  }
}
