import HTTPTypes
import Testing

@testable import HTTPTransport

@Suite struct BodyFramingTests {
  struct Case: Sendable {
    var lines: [HeaderField]
    var length: Int64?
    var isMalformed = false
    var isAmbiguous = false

    init(_ lines: (String, String)..., length: Int64? = nil, isMalformed: Bool = false, isAmbiguous: Bool = false) {
      self.lines = lines.map { HeaderField($0.0, $0.1) }
      (self.length, self.isMalformed, self.isAmbiguous) = (length, isMalformed, isAmbiguous)
    }
  }

  @Test(arguments: [
    Case(("etag", "1")),
    Case(("content-length", "12"), length: 12),
    Case(("content-length", "0"), length: 0),
    Case(("content-length", "99999999999999999999"), length: .max),
    Case(("content-length", ""), isMalformed: true),
    Case(("content-length", "12a"), isMalformed: true),
    Case(("content-length", "-1"), isMalformed: true),
    Case(("content-length", "12"), ("content-length", "12"), length: 12),
    Case(("content-length", "12"), ("content-length", "13"), length: 13, isAmbiguous: true),
    Case(("content-length", "12, 12")),
    Case(("content-length", "12, 13"), isAmbiguous: true),
    Case(("content-length", "12"), ("content-encoding", "identity"), length: 12),
    Case(("content-encoding", "GZip"), ("content-length", "12")),
    Case(("content-encoding", "identity"), ("content-encoding", "gzip"), ("content-length", "12")),
    Case(("content-length", "12"), ("content-length", "x"), ("transfer-encoding", "chunked")),
  ])
  func `the lengths of a head`(of example: Case) {
    let framing = BodyFraming(example.lines)
    #expect(framing.contentLength == example.length)
    #expect(framing.hasMalformedLength == example.isMalformed)
    #expect(framing.hasAmbiguousLength == example.isAmbiguous)
  }

  @Test(
    arguments: [
      ([], true), (["content-encoding: gzip"], true), (["transfer-encoding: identity"], true),
      (["content-length: 1"], false), (["transfer-encoding: chunked"], false),
      (["content-encoding: gzip", "content-length: 1"], false),
    ] as [([String], Bool)])
  func `a body without a length and without chunks ends with its connection`(lines: [String], isEndedByClose: Bool) {
    let fields = lines.map { $0.split(separator: ": ") }.map { HeaderField(String($0[0]), String($0[1])) }
    #expect(BodyFraming(fields).isEndedByClose == isEndedByClose)
  }

  @Test func `the lines of a coding are joined, in lower case`() {
    let framing = BodyFraming([
      HeaderField("content-encoding", "GZIP"), HeaderField("transfer-encoding", "Chunked"),
      HeaderField("content-encoding", "br"),
    ])
    #expect(framing.contentCoding == "gzip, br" && framing.transferCoding == "chunked")
    let plain = BodyFraming([HeaderField("etag", "1")])
    #expect(plain.contentCoding == nil && plain.transferCoding == nil)
  }

  @Test(
    arguments: [
      (nil, false), ("bytes 0-9/10", false), ("bytes 0-8/10", true), ("bytes 1-9/10", true), ("bytes 0-9/*", true),
      ("pages 1", true),
    ] as [(String?, Bool)])
  func `a 206 is partial unless its range is the whole`(range: String?, isPartial: Bool) {
    #expect(BodyFraming(range.map { [HeaderField("content-range", $0)] } ?? []).isPartial == isPartial)
  }
}
