import HTTPTypes
import Testing
import Text

@testable import ImageStore

@Suite struct FileTests {
  @Test func `SHA-256 gives the digests of FIPS 180-4 for one piece or several`() {
    func hexadecimalDigits(_ digest: [UInt8]) -> String {
      digest.map { hexadecimal(UInt64($0), digits: 2) }.joined()
    }
    #expect(
      hexadecimalDigits(SHA256.digest(of: []))
        == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    var hash = SHA256()
    for _ in 0..<2 {
      for piece in ["a", "", "bc"] { hash.update(Array(piece.utf8)) }
      let digest = hash.finish()
      #expect(hexadecimalDigits(digest) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    }
  }

  @Test func `a file name is parsed to its row and its worker, and foreign names are rejected`() {
    let name = FileName(id: 0x0123_4567_89ab_cdef, digest: [0xde, 0xad, 0xbe, 0xef, 1], format: .jpeg)
    #expect(name.path == "ef/0123456789abcdef-deadbeef.jpg")
    #expect(FileName.parse("0123456789abcdef-deadbeef.jpg")?.id == name.id)
    #expect(FileName.parse("0123456789abcdef.tmp")?.isTemporary == true)
    for other in [
      "", "0123456789abcdef", "0123456789abcdef-deadbeef", "0123456789abcdef-deadbeef.", "0123456789abcdef-deadbee.jpg",
      "0123456789ABCDEF-deadbeef.jpg", "0123456789abcdef-deadbeef.jpg.bak", "f123456789abcdef-deadbeef.jpg",
      "0123456789abcdef.tmp2",
    ] {
      #expect(FileName.parse(other) == nil, "\(other)")
    }
  }

  @Test func `header fields keep their values as stored text`() {
    let fields = HeaderFields([
      HeaderField("a", ""), HeaderField("b", "x: y"), HeaderField("b", "ü"), HeaderField("c", "1\n2\n3"),
    ])
    #expect(
      HeaderFields(storedText: fields.storedText).lines.map(\.value) == ["", "x: y", "ü", "1 2 3"])
    #expect(HeaderFields(storedText: "").isEmpty)
    // A line without a name, as a damaged index may have it, is left out.
    #expect(HeaderFields(storedText: "a:1\nb\nc:2\n") == ["a": "1", "c": "2"])
  }

  @Test(arguments: [
    ("https://A.test/x", "a.test", 443), ("http://a.test?x", "a.test", 80), ("http://u:p@a.test:81#f", "a.test", 81),
    ("http://[::1]/", "::1", 80), ("https://[fe80::1]:8443/x@y:1", "fe80::1", 8443), ("http://a.test:/", "a.test", 80),
  ])
  func `the authority of a URL has its host and port`(url: String, host: String, port: Int) {
    let authority = Authority(of: url)
    #expect(authority?.host == host)
    #expect(authority?.port == port)
  }

  @Test(arguments: ["", "data:image/png,x", "a.test", "http:", "http://a:99999999999999999999/"])
  func `a URL without a host has no authority`(url: String) {
    #expect(Authority(of: url) == nil)
  }
}
