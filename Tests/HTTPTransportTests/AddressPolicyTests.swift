import Testing
import Threads

@testable import HTTPTransport

@Suite struct AddressPolicyTests {
  @Test(arguments: [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1",
    "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::ffff:127.0.0.1", "::ffff:10.1.1.1", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::10.0.0.1",
    "64:ff9b:1::1", "64:ff9b:1::8.8.8.8", "100::1", "2001::1", "2001:0:4136:e378:8000:63bf:80ff:fffe", "2001:2::1",
    "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:0a00:1::1", "2002:c0a8:101::", "3fff::1",
    "4000::1", "5f00::1", "fc00::1", "fd12:3456::1", "fe80::1", "febf::1", "fec0::1", "ff02::1", "ff0e::1",
  ])
  func `an address that is not public is not routable`(literal: String) throws {
    #expect(try !AddressPolicy.isGloballyRoutable(#require(IPAddress(literal)).bytes))
  }

  @Test(arguments: [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "128.0.0.1", "169.253.255.255",
    "172.15.255.255", "172.32.0.0", "192.0.1.1", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0",
    "223.255.255.255", "2606:4700::1111", "2001:4860:4860::8888", "2a00:1450::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
    "2002:808:808::1", "2001:0:4136:e378:8000:63bf:f7f7:f7f7",
  ])
  func `a public address is routable`(literal: String) throws {
    #expect(try AddressPolicy.isGloballyRoutable(#require(IPAddress(literal)).bytes))
  }

  @Test func `bytes that are not an address are not routable`() {
    #expect(!AddressPolicy.isGloballyRoutable([]))
    #expect(!AddressPolicy.isGloballyRoutable([8, 8, 8]))
    #expect(!AddressPolicy.isGloballyRoutable([8, 8, 8, 8, 8]))
  }

  @Test(arguments: [
    "127.0.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "127.1", "127.0.1", "0", "0.0.0.0",
    "localhost", "LOCALHOST.", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]",
    "127.0.0.1.", "１２７.0.0.1",
  ])
  func `every spelling of the loopback address is refused`(host: String) throws {
    let server = ScriptedServer { _, connection in connection.respond(body: "secret") }
    let transport = Transport.forTests { $0.network = .publicOnly }
    let error = try transport.get("http://\(host):\(server.port)/").error()
    // A host that the resolver does not accept as an address has no address.
    #expect(error.kind == .blockedAddress || error.kind == .resolve || error.kind == .invalidRequest, "\(error)")
    if !host.contains("１") && !host.hasSuffix(".") { #expect(error.kind == .blockedAddress) }
    #expect(server.connectionCount == 0)
  }

  @Test func `a redirect to an address that is not public is refused`() throws {
    let inner = ScriptedServer { _, connection in connection.respond(body: "secret") }
    let server = ScriptedServer { _, connection in connection.redirect(to: inner.url()) }
    // The policy allows the first connection and refuses the second.
    let passed = Locked(0)
    let transport = Transport.forTests {
      $0.network = .publicOnly
    } isPermitted: { _ in
      passed.withLock { passed in
        passed += 1
        return passed <= 2
      }
    }
    #expect(try transport.get(server.url()).error().kind == .blockedAddress)
    #expect(inner.connectionCount == 0)
    #expect(server.requests.count == 1)
  }

  @Test func `a stricter policy applies to connections that are already open`() throws {
    let server = ScriptedServer { _, connection in connection.respond(body: "x") }
    let transport = Transport.forTests()
    _ = try transport.get(server.url()).summary()
    var configuration = TransportConfiguration(userAgent: "later")
    configuration.network = .publicOnly
    transport.configure(configuration)
    #expect(try transport.get(server.url()).error().kind == .blockedAddress)
    configuration.network = .any
    transport.configure(configuration)
    _ = try transport.get(server.url()).summary()
    #expect(server.requests.map { $0["user-agent"] } == ["ImageWorker/test", "later"])
  }

  @Test func `blocked addresses are skipped if a host has others`() throws {
    let server = ScriptedServer { _, connection in connection.respond(body: "x") }
    let asked = Locked<[IPAddress]>([])
    let transport = Transport.forTests {
      $0.network = .publicOnly
    } isPermitted: { address in
      asked.withLock { $0.append(address) }
      return address.bytes.count == 4
    }
    _ = try transport.get("http://localhost:\(server.port)/").summary()
    #expect(asked.withLock { $0 }.contains { $0.bytes.count == 4 })
  }

  @Test(
    arguments: [
      ("http://127.0.0.1:1", [:]), ("socks5://127.0.0.1:1", [:]), ("socks4://127.0.0.1:1", [:]),
      ("socks5h://127.0.0.1:1", [:]), (nil, ["http_proxy": "127.0.0.1:1"]), (nil, ["HTTPS_PROXY": "127.0.0.1:1"]),
      (nil, ["ALL_PROXY": "socks5://127.0.0.1:1"]), (nil, ["all_proxy": "p:1", "no_proxy": "example.com"]),
    ] as [(String?, [String: String])])
  func `the public policy refuses a configuration with a proxy`(proxy: String?, environment: [String: String]) throws {
    let server = ScriptedServer { _, connection in connection.respond(body: "x") }
    let transport = Transport.forTests(environment: environment) {
      $0.network = .publicOnly
      $0.proxy = proxy
    } isPermitted: { _ in
      true
    }
    // It makes no difference whether this URL would go through the proxy.
    for url in [server.url(), "http://localhost.localdomain/", "https://example.com/"] {
      let error = try transport.get(url).error()
      #expect(error.kind == .invalidRequest)
      #expect(error.message.contains("proxy"))
    }
    #expect(server.connectionCount == 0)
  }

  @Test(
    arguments: [
      ("", ["http_proxy": "127.0.0.1:1", "https_proxy": "127.0.0.1:1"]),
      (nil, ["all_proxy": "p:1", "no_proxy": "a,*"]),
      (nil, ["HTTP_PROXY": "never"]), (nil, ["http_proxy": ""]),
    ] as [(String?, [String: String])])
  func `the public policy is accepted without a proxy`(proxy: String?, environment: [String: String]) throws {
    let server = ScriptedServer { _, connection in connection.respond(body: "x") }
    let transport = Transport.forTests(environment: environment) {
      $0.network = .publicOnly
      $0.proxy = proxy
    } isPermitted: { _ in
      true
    }
    #expect(transport.get(server.url()).text == "x")
  }

  @Test func `a proxy's connection is not reused after the policy has become stricter`() throws {
    let proxy = ScriptedServer { _, connection in connection.respond(body: "x") }
    let transport = Transport.forTests { $0.proxy = proxy.url("") }
    _ = try transport.get("http://localhost/").summary()
    var configuration = TransportConfiguration(userAgent: "later")
    configuration.network = .publicOnly
    configuration.proxy = proxy.url("")
    transport.configure(configuration)
    #expect(try transport.get("http://localhost/").error().kind == .invalidRequest)
    configuration.proxy = ""
    transport.configure(configuration)
    #expect(try transport.get(proxy.url()).error().kind == .blockedAddress)
    #expect(proxy.requests.count == 1)
  }
}
