import Foundation
import Platform
import Testing

@testable import HTTPTransport

@Suite struct HostKindTests {
  @Test(arguments: [
    ("127.0.0.1", HostKind.address), ("[::1]", .address), ("[fe80::1%25eth0]", .address),
    ("localhost", .loopback), ("localhost.", .loopback), ("a.localhost", .loopback), ("a.localhost.", .loopback),
    ("example.com", .name), ("example.com.", .name), ("intranet", .name), ("_dmarc.example.com", .name),
    ("localhost.example.com", .name), ("notlocalhost", .name), ("1.com", .name), ("0x.com", .name),
    ("a..b", .impossible), (".", .impossible), ("..", .impossible), (".com", .impossible), ("*", .impossible),
    ("a,b", .impossible), ("a:b", .impossible), ("a b", .impossible), ("127.0.0.1.", .impossible),
    ("1.2.3", .impossible), ("a.0x7f", .impossible), ("nowhere.invalid", .impossible), ("x.onion.", .impossible),
    ("bücher.example", .impossible), ("camera.local", .system), ("camera.local.", .system),
  ])
  func `the kind of a host determines how its addresses are found`(host: String, kind: HostKind) {
    #expect(HostKind(host) == kind)
  }

  @Test func `a name is at most 253 characters long, and a label 63`() {
    let label = String(repeating: "a", count: 63)
    let name = Array(repeating: label, count: 3).joined(separator: ".") + "."
    #expect(HostKind(name + String(repeating: "b", count: 61)) == .name)
    #expect(HostKind(name + String(repeating: "b", count: 61) + ".") == .name)
    #expect(HostKind(name + String(repeating: "b", count: 62)) == .impossible)
    #expect(HostKind("a" + label) == .impossible)
  }
}

@Suite struct SearchListTests {
  @Test(arguments: [
    ("www.example.com", 1, ["www.example.com", "www.example.com.a.test", "www.example.com.b.test"]),
    ("www", 1, ["www.a.test", "www.b.test", "www"]),
    ("www.example.com", 5, ["www.example.com.a.test", "www.example.com.b.test", "www.example.com"]),
    ("www.", 1, ["www."]), ("www", 0, ["www", "www.a.test", "www.b.test"]),
  ])
  func `a name is asked unchanged and in each domain`(name: String, minDots: Int, names: [String]) {
    #expect(SearchList(domains: ["a.test", "b.test"], minDots: minDots).candidates(for: name) == names)
  }

  @Test func `without domains a name is asked unchanged`() {
    #expect(SearchList().candidates(for: "www") == ["www"])
    #expect(SearchList().candidates(for: "www.example.com") == ["www.example.com"])
  }
}

@Suite struct HostsFileTests {
  @Test func `each name of a long file is found`() {
    let lines = (0..<10_000).map { "0.0.0.0 ads-\($0).example\n" }.joined()
    let file = HostsFile(Array(lines.utf8))
    #expect(file["ads-0.example"] == [IPAddress("0.0.0.0")])
    #expect(file["ads-9999.example"] == [IPAddress("0.0.0.0")])
    #expect(file["ads-10000.example"] == [])
  }

  @Test func `a file is read again after it has changed`() throws {
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("hosts-\(UUID().uuidString)")
    var file = WatchedFile(path: path.path)
    let start = Instant.now
    #expect(file.change(now: start) == [])
    #expect(file.change(now: start + .seconds(2)) == nil)
    try Data("one".utf8).write(to: path)
    #expect(file.change(now: start + .seconds(2)) == nil)
    #expect(file.change(now: start + .seconds(4)) == Array("one".utf8))
    #expect(file.change(now: start + .seconds(6)) == nil)
    try Data("another".utf8).write(to: path)
    #expect(file.change(now: start + .seconds(8)) == Array("another".utf8))
    try FileManager.default.removeItem(at: path)
    #expect(file.change(now: start + .seconds(10)) == [])
  }

  @Test func `the addresses of a name are those of all its lines`() {
    let file = HostsFile(
      Array(
        """
        # comment
        127.0.0.1\tlocalhost loghost
        192.0.2.1 One.Example  one # two.example
          2001:db8::1 one.example\r
        fe80::1%lo0 broken.example
        nonsense broken.example
        192.0.2.2
        192.0.2.3 one.example.org xone.example
        """.utf8))
    #expect(file["one.example"] == [IPAddress("192.0.2.1"), IPAddress("2001:db8::1")])
    #expect(file["one.example."] == file["one.example"])
    #expect(file["one"] == [IPAddress("192.0.2.1")])
    #expect(file["loghost"] == [IPAddress("127.0.0.1")])
    #expect(file["two.example"] == [])
    #expect(file["one.example.org"] == [IPAddress("192.0.2.3")])
    #expect(file["192.0.2.1"] == [])
    #expect(file["broken.example"] == [])
  }
}
