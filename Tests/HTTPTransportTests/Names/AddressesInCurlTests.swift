import Testing

@testable import HTTPTransport

@Suite struct AddressesInCurlTests {
  private let addresses = ["192.0.2.1", "2001:db8::1"].compactMap { IPAddress($0) }

  @Test func `an entry is removed after the last hop that uses it`() {
    var entries = AddressesInCurl()
    let key = "a.test:443"
    #expect(entries.begin(key, addresses) == ["a.test:443:192.0.2.1,[2001:db8::1]"])
    #expect(entries.begin(key, [addresses[0]]) == ["a.test:443:192.0.2.1"])
    entries.end(key)
    #expect(entries.begin("b.test:80", [addresses[0]]) == ["b.test:80:192.0.2.1"])
    entries.end(key)
    #expect(entries.begin("c.test:80", [addresses[0]]) == ["-a.test:443", "c.test:80:192.0.2.1"])
    entries.end("c.test:80")
    #expect(entries.begin("c.test:80", [addresses[1]]) == ["c.test:80:[2001:db8::1]"])
  }
}
