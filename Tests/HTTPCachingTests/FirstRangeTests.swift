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

  @Test func `another success is the whole, and an error is no statement about the image`() {
    for status in [200, 204] { #expect(answer(status, ["content-range": "bytes 0-99/1000"]) == .whole) }
    for status in [304, 404, 412, 416, 429, 500] {
      #expect(answer(status, ["content-range": "bytes */0"]) == .mismatch)
    }
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
