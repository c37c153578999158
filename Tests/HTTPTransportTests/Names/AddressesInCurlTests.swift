import HTTPTypes
import Testing

@testable import HTTPTransport

@Suite struct AddressesInCurlTests {
  private let addresses = ["192.0.2.1", "2001:db8::1"].compactMap { IPAddress($0) }

  @Test func `an entry is taken out after the last hop that uses it`() {
    var told = AddressesInCurl()
    let key = AddressesInCurl.key(Origin(scheme: "https", host: "a.test", port: 443))
    #expect(told.begin(key, addresses) == ["a.test:443:192.0.2.1,[2001:db8::1]"])
    #expect(told.begin(key, [addresses[0]]) == ["a.test:443:192.0.2.1"])
    told.end(key)
    #expect(told.begin("b.test:80", [addresses[0]]) == ["b.test:80:192.0.2.1"])
    told.end(key)
    #expect(told.begin("c.test:80", [addresses[0]]) == ["-a.test:443", "c.test:80:192.0.2.1"])
    told.end("c.test:80")
    #expect(told.begin("c.test:80", [addresses[1]]) == ["c.test:80:[2001:db8::1]"])
  }
}
