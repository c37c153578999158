import HTTPCaching
import HTTPTypes
import Testing

/// The answers to a request for the first bytes.
@Suite struct FirstRangeTests {
  private let range = FirstRange(byteCount: 100)

  private func answer(_ status: Int, _ headers: HeaderFields, length: Int64? = nil) -> FirstRange.Answer {
    range.answer(status: status, headers: headers, contentLength: length)
  }

  @Test func `the fields ask for so many bytes`() { #expect(range.requestFields == ["range": "bytes=0-99"]) }

  @Test func `a range is the start of the whole response`() {
    let headers: HeaderFields = ["etag": "\"a\"", "content-length": "100", "content-range": "bytes 0-99/1000"]
    let whole: HeaderFields = ["etag": "\"a\"", "content-length": "1000"]
    #expect(answer(206, headers, length: 100) == .start(count: 100, whole, completeLength: 1000))
    #expect(
      answer(206, ["content-range": "bytes 0-49/50"])
        == .start(count: 50, ["content-length": "50"], completeLength: 50))
  }

  @Test(arguments: [200, 204, 304, 404, 412, 429, 500])
  func `another status is what it is without a range`(status: Int) {
    #expect(answer(status, ["content-range": "bytes 0-99/1000"]) == .other)
  }

  @Test func `a range that cannot be satisfied is no statement about the image`() {
    #expect(answer(416, ["content-range": "bytes */0"]) == .mismatch)
  }

  @Test(
    arguments: [
      [:], ["content-range": "bytes 0-99/*"], ["content-range": "bytes 1-100/1000"],
      ["content-range": "bytes 0-98/1000"], ["content-range": "bytes 0-100/1000"], ["content-range": "items 0-99/1000"],
      ["content-range": "bytes 0-99/1000", "content-encoding": "gzip"],
      ["content-range": "bytes 0-99/1000", "content-type": "multipart/byteranges; boundary=x"],
    ] as [HeaderFields]) func `a range that is not the requested one is not used`(headers: HeaderFields)
  {
    #expect(answer(206, headers) == .mismatch)
  }

  @Test func `a body that is longer or shorter than its range is not used`() {
    #expect(answer(206, ["content-range": "bytes 0-99/1000"], length: 99) == .mismatch)
    #expect(answer(206, ["content-range": "bytes 0-99/1000"], length: 1000) == .mismatch)
  }
}
