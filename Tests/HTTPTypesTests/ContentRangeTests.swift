import HTTPTypes
import Testing

@Suite struct ContentRangeTests {
  @Test(
    arguments: [
      ("bytes 0-0/1", 0, 0, 1), ("bytes 5-9/10", 5, 9, 10), ("BYTES 5-9/*", 5, 9, nil),
      ("bytes 0-9223372036854775806/9223372036854775807", 0, .max - 1, .max),
    ] as [(String, Int64, Int64, Int64?)])
  func `a range of bytes is parsed`(value: String, first: Int64, last: Int64, length: Int64?) throws {
    let range = try #require(ContentRange(value))
    #expect(range.first == first && range.last == last && range.completeLength == length)
    #expect(range.count == last - first + 1)
  }

  @Test(arguments: [
    "", "bytes", "bytes ", "bytes */10", "bytes 5-4/10", "bytes 5-10/10", "bytes 5-/10", "bytes -5/10", "bytes 5/10",
    "bytes 0-1", "bytes 0-1/", "bytes 0-1/2/3", "bytes 0-1-2/3", "bytes=0-1/2", "bytes  0-1/2", "bytes 0-1/2 ",
    "bytes +0-1/2", "bytes 0-1/-2", "bytes ٠-١/٢", "pages 0-1/2", "bytes 0-1/99999999999999999999",
    "bytes 0-99999999999999999999/*", "bytes 0-9223372036854775807/*",
    "bytes 9223372036854775807-9223372036854775807/*", "bytes 0-1/2, bytes 0-1/2",
  ])
  func `any other value is refused`(value: String) {
    #expect(ContentRange(value) == nil)
  }
}
