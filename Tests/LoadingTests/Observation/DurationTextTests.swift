import Testing

@testable import Loading

struct DurationTextTests {
  @Test(arguments: [
    (0, "0 ms"), (182, "182 ms"), (999, "999 ms"), (1000, "1 s"), (1499, "1 s"), (29_999, "30 s"),
    (86_400_000, "86400 s"),
  ])
  func `a duration is rounded to seconds, if it is not shorter`(milliseconds: Int64, text: String) {
    #expect(Duration.milliseconds(milliseconds).text == text)
    #expect((Duration.milliseconds(milliseconds) - .microseconds(400)).text == text)
  }
}
