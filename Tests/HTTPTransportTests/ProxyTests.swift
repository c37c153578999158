import HTTPTypes
import Testing

@testable import HTTPTransport

@Suite struct ProxyTests {
  func proxy(_ url: String, option: String? = nil, _ environment: [String: String]) throws -> String? {
    try ProxyRules(option: option) { environment[$0] }.proxy(for: ResourceURL(url).origin)
  }

  @Test func `environment variables have the same meaning as in curl`() throws {
    let all = [
      "http_proxy": "h", "HTTP_PROXY": "never", "https_proxy": "s", "HTTPS_PROXY": "S", "all_proxy": "a",
      "ALL_PROXY": "A",
    ]
    #expect(try proxy("http://x/", all) == "h")
    #expect(try proxy("https://x/", all) == "s")
    #expect(try proxy("http://x/", ["HTTP_PROXY": "never"]) == nil)
    #expect(try proxy("https://x/", ["HTTPS_PROXY": "S", "ALL_PROXY": "A"]) == "S")
    #expect(try proxy("http://x/", ["http_proxy": "", "ALL_PROXY": "A"]) == "A")
    #expect(try proxy("http://x/", option: "o", all) == "o")
    #expect(try proxy("http://x/", option: "", all) == nil)
    #expect(try proxy("http://x/", [:]) == nil)
  }

  @Test(arguments: [
    ("example.com", "http://example.com/", true), ("example.com", "http://www.example.com:8080/", true),
    (".example.com", "http://example.com/", true), ("example.com", "http://badexample.com/", false),
    ("EXAMPLE.com.", "http://Example.COM./", true), ("a,b c", "http://c/", true), ("*", "http://x/", true),
    ("*.com", "http://x.com/", true), ("*.com", "http://xcom/", false), ("127.0.0.1", "http://0x7f.1/", true),
    ("10.0.0.0/8", "http://10.200.0.1/", true),
    ("10.0.0.0/8", "http://11.0.0.1/", false), ("10.0.0.0/9", "http://10.128.0.1/", false),
    ("::1", "http://[::1]/", true), ("[::1]", "http://[::1]/", true), ("[::1]:80", "http://[::1]/", true),
    ("[::1]:81", "http://[::1]/", false), ("x:80", "http://x/", true), ("x:81", "http://x/", false),
    ("x:443", "https://a.x/", true), ("127.0.0.1:80", "http://127.0.0.1/", true), ("x:y", "http://x/", false),
    ("fe80::/10", "http://[fe81::1]/", true), ("0.0.1", "http://127.0.0.1/", false),
    ("10.0.0.0/99", "http://10.0.0.0/", false),
    ("", "http://x/", false), (",", "http://x/", false), (".", "http://x/", false),
  ])
  func `no_proxy exempts hosts, domains and blocks`(list: String, url: String, isExempt: Bool) throws {
    #expect(try (proxy(url, ["all_proxy": "p", "NO_PROXY": list]) == nil) == isExempt)
  }

  @Test(arguments: ["http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY"])
  func `a variable that names no proxy is a problem of the configuration, unless an option replaces it`(name: String) {
    var configuration = TransportConfiguration(userAgent: "x")
    let environment = [name: "foo://secret"]
    let problem = configuration.problem { environment[$0] }
    #expect(problem?.contains("the environment variable \(name) must have one of the schemes") == true)
    #expect(problem?.contains("secret") == false)
    configuration.proxy = ""
    #expect(configuration.problem { environment[$0] } == nil)
  }

  @Test func `a proxy gets the whole URL, from the option and from the environment`() throws {
    let proxy = ScriptedServer { _, connection in connection.respond(body: "proxied") }
    let byOption = Transport.forTests { $0.proxy = proxy.url("") }
    let byVariable = Transport.forTests(environment: ["http_proxy": "us:er@" + proxy.origin])
    #expect(byOption.get("http://example.invalid/a?b").text == "proxied")
    #expect(byVariable.get("http://example.invalid/a?b").text == "proxied")
    for request in proxy.requests { #expect(request.line == "GET http://example.invalid/a?b HTTP/1.1") }
    #expect(proxy.requests.map { $0["proxy-authorization"] } == [nil, "Basic dXM6ZXI="])
  }

  @Test func `an exempt host is reached directly`() throws {
    let server = ScriptedServer { _, connection in connection.respond(body: "direct") }
    let transport = Transport.forTests(environment: ["http_proxy": "127.0.0.1:1", "no_proxy": "127.0.0.1"])
    #expect(transport.get(server.url()).text == "direct")
    #expect(try transport.get("http://example.invalid/").error().kind == .connect)
    #expect(transport.get(server.url()).text == "direct")
  }

  @Test func `the failure of a proxy is a connect error that names the proxy`() throws {
    let proxy = ScriptedServer { _, connection in connection.respond("403 Forbidden") }
    let mute = ScriptedServer { _, connection in connection.close() }
    for url in ["http://127.0.0.1:1", "http://nowhere.invalid", "socks5h://127.0.0.1:1", proxy.url(""), mute.url("")] {
      let error = try Transport.forTests { $0.proxy = url }
        .get("https://example.invalid/?secret", headers: ["user-agent": "me"]).error()
      #expect(error.kind == .connect, "\(url): \(error)")
      #expect(error.message.contains("proxy"))
      #expect(!error.message.contains("secret"))
    }
    #expect(proxy.requests[0].line == "CONNECT example.invalid:443 HTTP/1.1")
    #expect(proxy.requests[0]["authorization"] == nil)
    #expect(proxy.requests[0]["user-agent"] == "ImageWorker/test")
  }
}
