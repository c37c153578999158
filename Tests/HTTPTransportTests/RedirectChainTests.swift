import HTTPTypes
import Testing

@testable import HTTPTransport

@Suite struct RedirectChainTests {
  let headers: HeaderFields = ["x-secret": "1", "accept": "a/b", "if-none-match": "\"a\""]

  func redirectChain(from url: String, to locations: String..., validatedURL: String? = nil) throws -> RedirectChain {
    var redirectChain = try RedirectChain(TransferRequest(url: url, headers: headers, validatedURL: validatedURL))
    for location in locations { try redirectChain.follow(location) }
    return redirectChain
  }

  /// Curl parses `%31%32%37.1` as 127.1, and that as 127.0.0.1 when it connects.
  @Test(arguments: ["http://%31%32%37.1/x", "http://0x7f%2e1/", "//%32130706433/"])
  func `a host that changes when it is parsed again is malformed`(location: String) throws {
    let base = try Target("http://example.com/")
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

  @Test func `a URL and the validated one are compared in normalized form`() throws {
    let fields = try redirectChain(from: "http://A.example:80#x", validatedURL: Target("http://a.example/").url).fields
    #expect(fields["if-none-match"] == "\"a\"")
  }

  @Test(arguments: [("f", "Zjo="), ("fo", "Zm86"), ("foo", "Zm9vOg=="), ("%C3%A9", "w6k6")])
  func `user information is encoded as base64`(user: String, base64: String) throws {
    #expect(try Target("http://\(user)@a.example/").authorization == "Basic " + base64)
  }

  /// Pieces of URLs, combined at random: a plain URL must equal curl's result.
  @Test func `a plain URL is parsed like curl does`() throws {
    var random = SystemRandomNumberGenerator()
    let schemes = ["http://", "https://", "HTTP://", "ftp://"]
    let hosts = [
      "a.example", "A.example", "xn--bcher-kva.example", "127.0.0.1", "127.1", "0x7f.1", "1.example", "a.1", "a", "a.",
      "[::1]", "me@a.example", "a_b.example", "", "256.1.1.1", "01.2.3.4", "bücher.example", "a..b", "-", ".",
    ]
    let ports = ["", "", ":", ":80", ":443", ":8080", ":0", ":08", ":65535", ":65536", ":x"]
    let paths = [
      "/a", "", "/", "/a/../b", "/./a", "/a.png", "/.a", "/%41", "/a b", "/ü", "//a", "/a:b@c", "/[a]", "/a\\b", "/~",
    ]
    let ends = ["?a=b&c", "", "?", "?a=b&c", "?a=/../b", "?%20", "?a b", "#x", "?a#b", "??", "?a=\"b\""]
    var plain = 0
    for _ in 0..<3000 {
      let url = [schemes, hosts, ports, paths, ends].map { pieces in
        Bool.random(using: &random) ? pieces[0] : pieces.randomElement(using: &random)!
      }.joined()
      guard let taken = Target(plain: url) else { continue }
      plain += 1
      let parsed = try Target(parsing: url)
      #expect(taken.url == parsed.url && taken.origin == parsed.origin && parsed.authorization == nil, "\(url)")
    }
    #expect(plain > 30)
  }

  @Test(arguments: [
    "http://a.example/x.png?w=1", "https://cdn.a-b.example:8443/a/b_c~d.webp", "http://127.0.0.1:8080/0/1.png",
  ])
  func `the usual URLs are plain`(url: String) { #expect(Target(plain: url) != nil) }
}
