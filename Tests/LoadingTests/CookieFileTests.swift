import Testing

@testable import Loading

struct CookieFileTests {
  private func lines(_ text: String, _ host: String) -> String { CookieFile(text).lines(for: host) }

  @Test func `a cookie is for its domain and the hosts under it`() {
    let text = "example.com\tTRUE\t/\tFALSE\t0\tsession\talice\n"
    for host in ["example.com", "img.example.com", "a.b.example.com"] {
      #expect(lines(text, host) == "cookie:" + text)
      #expect(lines("." + text, host) == "cookie:." + text)
    }
    for host in ["example.org", "badexample.com", "com", "127.0.0.1"] { #expect(lines(text, host).isEmpty) }
  }

  @Test func `another value, and one more cookie, is somebody else`() {
    func of(_ values: String...) -> String {
      lines(values.map { "a.test\tFALSE\t/\tFALSE\t0\ts\t\($0)\n" }.joined(), "a.test")
    }
    #expect(Set([of("1"), of("2"), of("1", "2"), of()]).count == 4)
  }

  @Test func `comments and blank lines are none, and what scripts do not see is one`() {
    let text = "# Netscape HTTP Cookie File\r\n\r\n \n#HttpOnly_a.test\tFALSE\t/\tTRUE\t0\ts\t1\r\n"
    #expect(lines(text, "a.test") == "cookie:a.test\tFALSE\t/\tTRUE\t0\ts\t1\n")
    #expect(lines(text, "b.test").isEmpty)
  }

  @Test func `a Set-Cookie line counts for all hosts`() {
    #expect(lines("Set-Cookie: a=1; domain=a.test\n", "b.test") == "cookie:Set-Cookie: a=1; domain=a.test\n")
  }
}
