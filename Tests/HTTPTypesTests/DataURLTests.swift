import HTTPTypes
import Testing

@Suite struct `Data URLs` {
  static let valid: [(text: String, mediaType: String, body: String)] = [
    ("data:,", "text/plain;charset=US-ASCII", ""),
    ("data:,a%20b", "text/plain;charset=US-ASCII", "a b"),
    ("DATA:image/svg+xml,<svg/>", "image/svg+xml", "<svg/>"),
    ("data:image/png;base64,aGVsbG8=", "image/png", "hello"),
    ("data:image/png;base64,aGVsbG8", "image/png", "hello"),
    ("data:image/png; BASE64,aGVs\n bG8=\t", "image/png", "hello"),
    ("data:image/png;base64,aGVsbG8%3D", "image/png", "hello"),
    ("data:image/png;base64,", "image/png", ""),
    ("data:image/png;base64,aGVsbG8h#fragment", "image/png", "hello!"),
    ("data:;charset=utf-8,x", "text/plain;charset=utf-8", "x"),
    ("data:nonsense,x", "text/plain;charset=US-ASCII", "x"),
    ("data: image/gif ,a,b", "image/gif", "a,b"),
    (" \n Data:image/gif,a b \t", "image/gif", "a b"),
    ("data:base64,eA==", "text/plain;charset=US-ASCII", "eA=="),
    ("data:,%%41%4%zz%", "text/plain;charset=US-ASCII", "%A%4%zz%"),
  ]

  @Test(arguments: valid) func `the content of a data URL is decoded`(text: String, mediaType: String, body: String)
    throws
  {
    let url = try DataURL(text)
    #expect(url.mediaType == mediaType)
    #expect(String(decoding: url.body, as: UTF8.self) == body)
  }

  @Test(arguments: [
    ("http://h/", "data:"), ("data:image/png;base64", "comma"), ("data:x#,y", "comma"),
    ("data:;base64,a", "complete"), ("data:;base64,aGVsbG8==", "base64"), ("data:;base64,aGVsbG8=x", "base64"),
    ("data:;base64,====", "base64"), ("data:;base64,aGV-bG8_", "base64"), ("data:;base64,aGVsbG8ü", "base64"),
  ]) func `a bad data URL is refused with the reason`(text: String, reason: String) {
    let error = #expect(throws: DataURL.Invalid.self) { try DataURL(text) }
    #expect(error?.description.contains(reason) == true)
  }

  @Test func `every byte survives base64`() throws {
    // Decoded, the alphabet itself is 0x00 0x10 0x83 ...
    let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    let body = try DataURL("data:;base64,\(alphabet)").body
    var bits: [Int] = []
    for byte in body { bits += (0..<8).reversed().map { Int(byte >> $0) & 1 } }
    let sixes = stride(from: 0, to: bits.count, by: 6).map { bits[$0..<$0 + 6].reduce(0) { $0 * 2 + $1 } }
    #expect(sixes == Array(0..<64))
  }

  @Test func `only the part before the comma is echoed`() {
    #expect(DataURL.echo("data:image/png;base64,AAAA") == "data:image/png;base64")
    #expect(DataURL.echo("data:" + String(repeating: "x", count: 1000)).count == 256)
    #expect(DataURL.echo("data:,\u{301}secret") == "data:", "the comma is a byte, whatever follows")
    #expect(DataURL.echo("data:" + String(repeating: "\u{301}", count: 1000)).utf8.count <= 260)
    #expect(DataURL.isDataURL("dAtA:,") && !DataURL.isDataURL("date:,") && !DataURL.isDataURL("data"))
  }
}
