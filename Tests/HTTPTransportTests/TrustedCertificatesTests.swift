import Testing

@testable import HTTPTransport

@Suite struct TrustedCertificatesTests {
  @Test func `a file without a directory is used alone`() {
    func isFileAlone(_ environment: [String: String], hasDefaultFile: Bool = true) -> Bool {
      TrustedCertificates(environment: { environment[$0] }, isReadable: { _ in hasDefaultFile }).isFileAlone
    }
    #expect(isFileAlone(["SSL_CERT_FILE": "/file"], hasDefaultFile: false))
    #expect(isFileAlone(["CURL_CA_BUNDLE": "/file", "SSL_CERT_DIR": "/directory"], hasDefaultFile: false))
    #expect(!isFileAlone(["SSL_CERT_FILE": "/file", "SSL_CERT_DIR": "/directory"]))
    #expect(!isFileAlone(["SSL_CERT_DIR": "/directory"]))
    #expect(!isFileAlone([:], hasDefaultFile: false))
    #expect(isFileAlone([:]) == (TrustedCertificates.defaults.file != nil))
  }
}
