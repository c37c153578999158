import HTTPTypes
import Testing

@Suite struct `Resource URLs` {
  struct Case: Sendable, CustomTestStringConvertible {
    var text: String
    var sent: String
    var origin: String
    var target: String
    var redacted: String
    var userInfo: String?

    var testDescription: String { text }
  }

  static let cases = [
    Case(
      text: "http://example.com/a/b.png", sent: "http://example.com/a/b.png", origin: "http://example.com",
      target: "/a/b.png", redacted: "http://example.com/a/b.png"),
    Case(
      text: "HTTPS://Example.COM:443/A?B=C#frag", sent: "https://example.com/A?B=C", origin: "https://example.com",
      target: "/A?B=C", redacted: "https://example.com/A"),
    Case(
      text: "http://example.com", sent: "http://example.com/", origin: "http://example.com", target: "/",
      redacted: "http://example.com/"),
    Case(
      text: "http://example.com?x", sent: "http://example.com/?x", origin: "http://example.com", target: "/?x",
      redacted: "http://example.com/"),
    Case(
      text: "http://example.com#x?y", sent: "http://example.com/", origin: "http://example.com", target: "/",
      redacted: "http://example.com/"),
    Case(
      text: "http://u:p@h:8080/x?sig=secret", sent: "http://u:p@h:8080/x?sig=secret", origin: "http://h:8080",
      target: "/x?sig=secret", redacted: "http://h:8080/x", userInfo: "u:p"),
    Case(
      text: "http://a@b@h/", sent: "http://a%40b@h/", origin: "http://h", target: "/", redacted: "http://h/",
      userInfo: "a%40b"),
    Case(text: "http://@h/", sent: "http://h/", origin: "http://h", target: "/", redacted: "http://h/"),
    Case(text: "http://h:/x", sent: "http://h/x", origin: "http://h", target: "/x", redacted: "http://h/x"),
    Case(text: "http://h:080/", sent: "http://h/", origin: "http://h", target: "/", redacted: "http://h/"),
    Case(
      text: "http://h:65535/", sent: "http://h:65535/", origin: "http://h:65535", target: "/",
      redacted: "http://h:65535/"),
    Case(
      text: "http://[2001:DB8::1]:81/", sent: "http://[2001:db8::1]:81/", origin: "http://[2001:db8::1]:81",
      target: "/", redacted: "http://[2001:db8::1]:81/"),
    Case(
      text: "http://u@[::ffff:127.0.0.1]/", sent: "http://u@[::ffff:7f00:1]/", origin: "http://[::ffff:7f00:1]",
      target: "/", redacted: "http://[::ffff:7f00:1]/", userInfo: "u"),
    Case(
      text: "http://h/a b?c d", sent: "http://h/a%20b?c%20d", origin: "http://h", target: "/a%20b?c%20d",
      redacted: "http://h/a%20b"),
    Case(
      text: "http://h/é?ü=日", sent: "http://h/%C3%A9?%C3%BC=%E6%97%A5", origin: "http://h",
      target: "/%C3%A9?%C3%BC=%E6%97%A5", redacted: "http://h/%C3%A9"),
    Case(
      text: "http://h/\"<>\\^`{|}", sent: "http://h/%22%3C%3E/%5E%60%7B|%7D", origin: "http://h",
      target: "/%22%3C%3E/%5E%60%7B|%7D", redacted: "http://h/%22%3C%3E/%5E%60%7B|%7D"),
    Case(
      text: "http://h/100%/%zz/%2f[1]?a[]=1&u=http://x/?y", sent: "http://h/100%/%zz/%2f[1]?a[]=1&u=http://x/?y",
      origin: "http://h", target: "/100%/%zz/%2f[1]?a[]=1&u=http://x/?y", redacted: "http://h/100%/%zz/%2f[1]"),
    Case(
      text: "http://h/?a=b|c^`{}\\'\"<>", sent: "http://h/?a=b|c^`{}\\%27%22%3C%3E", origin: "http://h",
      target: "/?a=b|c^`{}\\%27%22%3C%3E", redacted: "http://h/"),
    Case(
      text: "http://u:p:q;r@h/", sent: "http://u:p%3Aq%3Br@h/", origin: "http://h", target: "/", redacted: "http://h/",
      userInfo: "u:p%3Aq%3Br"),
    Case(text: "http://:@h/", sent: "http://h/", origin: "http://h", target: "/", redacted: "http://h/"),
    Case(
      text: "http://Bücher.example/x", sent: "http://xn--bcher-kva.example/x", origin: "http://xn--bcher-kva.example",
      target: "/x", redacted: "http://xn--bcher-kva.example/x"),
    Case(
      text: "http://他们为什么不说中文。cn/", sent: "http://xn--ihqwcrb4cv8a8dqg056pqjye.cn/",
      origin: "http://xn--ihqwcrb4cv8a8dqg056pqjye.cn", target: "/",
      redacted: "http://xn--ihqwcrb4cv8a8dqg056pqjye.cn/"),
  ]

  @Test(
    arguments: [
      ("127.0.0.1", true), ("[::1]", true), ("10.1", true), ("a.example", false), ("1a.example1", false),
      ("a.1b", false), ("localhost", false),
    ])
  func `an address is distinguished from a name`(host: String, isAddress: Bool) {
    #expect(Origin(scheme: "http", host: host, port: 80).isAddress == isAddress)
  }

  @Test(arguments: cases) func `a URL is split into its parts`(_ expected: Case) throws {
    let url = try ResourceURL(expected.text)
    #expect(url.requestURL == expected.sent)
    #expect(url.origin.description == expected.origin)
    #expect(url.requestTarget == expected.target)
    #expect(url.redacted == expected.redacted)
    #expect(url.userInfo == expected.userInfo)
    #expect(try ResourceURL(url.requestURL) == url)
  }

  @Test(arguments: [
    ("", ResourceURLError.Kind.empty), ("example.com/x", .noScheme), ("/x", .noScheme), ("://h", .noScheme),
    ("1http://h", .noScheme), ("ht tp://h", .noScheme), (" \n", .empty), ("ftp://h/x", .unsupportedScheme),
    ("file:///etc/passwd", .unsupportedScheme), ("javascript:alert(1)", .unsupportedScheme),
    ("data:,x", .unsupportedScheme), ("http:", .host), ("http://", .host), ("http:///", .host), ("http://:80/", .host),
    ("http://u@/x", .host), ("http://./", .host), ("http://a b/", .host), ("http://a%2fb/", .host),
    ("http://a%00b/", .host), ("http://ü%00b/", .host), ("http://ü%25/", .host), ("http://a%FFb/", .host),
    ("http://256.0.0.1/", .host), ("http://1.2.3.4.5/", .host), ("http://1..2/", .host), ("http://08/", .host),
    ("http://4294967296/", .host), ("http://0x1ffffffff/", .host), ("http://a.1/", .host), ("http://a.0x1./", .host),
    ("http://*.a/", .host), ("http://a,b/", .host), ("http://a'b/", .host), ("http://a=b/", .host),
    ("http://a%0d%0Ab@h/", .userInfo), ("http://a:%7F@h/", .userInfo),
    ("http://a|b/", .host), ("http://[::1/", .host),
    ("http://[]/", .host), ("http://[::1]x/", .host), ("http://[:::]/", .host), ("http://[1::2::3]/", .host),
    ("http://[1:2:3:4:5:6:7]/", .host), ("http://[1:2:3:4:5:6:7:8:9]/", .host), ("http://[12345::]/", .host),
    ("http://[::1%25eth0]/", .host), ("http://[::256.0.0.1]/", .host), ("http://[:1:2:3:4:5:6:7]/", .host),
    ("http://::1/", .host), ("http://h:0/", .port), ("http://h:65536/", .port),
    ("http://h:99999999999999999999/", .port),
    ("http://h:x/", .port), ("http://h:-1/", .port), ("http://h:8 0/", .port),
  ]) func `a text that is not a URL is refused with the reason`(text: String, kind: ResourceURLError.Kind) {
    let error = #expect(throws: ResourceURLError.self) { try ResourceURL(text) }
    #expect(error?.kind == kind)
    #expect(error?.description.isEmpty == false)
  }

  @Test(arguments: [
    "::", "::1", "1::", "1:0:0:2::", "::1:0:0:2:0:0", "1:2:3:4:5:6:7:8", "1::8",
  ])
  func `an IPv6 address in its shortest form stays as it is`(address: String) throws {
    #expect(try ResourceURL("http://[\(address)]/").host == "[\(address)]")
  }

  @Test(arguments: [
    ("::ABCD:0:0:1", "::abcd:0:0:1"), ("0:0:1:0:0:0:1:0", "0:0:1::1:0"), ("1:0:3:0:5:0:7:0", "1:0:3:0:5:0:7:0"),
    ("::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"), ("1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"), ("0:0:0:0:0:0:0:0", "::"),
  ])
  func `each spelling of an IPv6 address becomes the shortest one`(written: String, sent: String) throws {
    #expect(try ResourceURL("http://[\(written)]/").host == "[\(sent)]")
  }

  /// As browsers read them.
  @Test(arguments: [
    (" \t http://h/x \n", "http://h/x"), ("ht\ntp://h/a\tb\r\nHost: x", "http://h/abHost:%20x"),
    ("http:\\\\h\\x?\\", "http://h/x?\\"), ("http:h", "http://h/"), ("http:/h/x", "http://h/x"),
    ("http:///x/y", "http://x/y"),
    ("http://a\\@b/", "http://a/@b/"), ("http://h/\u{0}\u{7F}", "http://h/%00%7F"),
    ("http://h/a/../b/%2E%2e/./c/.", "http://h/c/"), ("http://h/..", "http://h/"), ("http://h/a//../b", "http://h/a/b"),
    ("http://h/.%2e/%2e/...", "http://h/..."), ("http://h/a/b/%2e%2E?..", "http://h/a/?.."),
    ("http://h/u/%2e%2e/x", "http://h/x"),
    ("http://a%41/", "http://aa/"), ("http://b%C3%BCcher.example/", "http://xn--bcher-kva.example/"),
    ("http://ＥＸＡＭＰＬＥ．com/", "http://example.com/"), ("http://faß.example/", "http://xn--fa-hia.example/"),
    ("http://u\u{308}.example/", "http://xn--tda.example/"), ("http://☃.example/", "http://xn--n3h.example/"),
    ("http://XN--TDA.example/", "http://xn--tda.example/"), ("http://a_b.example./", "http://a_b.example./"),
    ("http://127.1/", "http://127.0.0.1/"), ("http://0x7F.1/", "http://127.0.0.1/"),
    ("http://017700000001/", "http://127.0.0.1/"),
    ("http://%31%32%37.1/x", "http://127.0.0.1/x"), ("http://１２７.0.0.1/", "http://127.0.0.1/"),
    ("http://1.2.3.4./", "http://1.2.3.4/"),
    ("http://256/", "http://0.0.1.0/"), ("http://0x/", "http://0.0.0.0/"),
  ])
  func `a URL is read as the standard says`(written: String, sent: String) throws {
    #expect(try ResourceURL(written).requestURL == sent)
    #expect(try ResourceURL(sent).requestURL == sent)
  }

  @Test(arguments: [
    ("x", "http://h/a/x"), ("/x", "http://h/x"), ("//g/x", "http://g/x"), ("\\\\g\\x", "http://g/x"),
    ("/\\g", "http://g/"),
    ("?x", "http://h/a/b?x"), ("#x", "http://h/a/b?c"), ("", "http://h/a/b?c"), (" ../../../x ", "http://h/x"),
    ("http:x", "http://h/a/x"), ("http:/x", "http://h/x"), ("https:x", "https://x/"), ("https:/x/y", "https://x/y"),
    ("HTTP://g", "http://g/"), ("./x:y", "http://h/a/x:y"), ("a b?c|d", "http://h/a/a%20b?c|d"),
    ("//u:p@g", "http://u:p@g/"),
    ("\\x", "http://h/x"), ("/../%2e%2e/x", "http://h/x"),
  ])
  func `a reference is resolved against the URL of its document`(reference: String, absolute: String) throws {
    let base = try ResourceURL("http://me:pw@h/a/b?c#d")
    #expect(try ResourceURL(reference, relativeTo: base).requestURL == absolute)
  }

  @Test func `a reference may have another scheme`() throws {
    let base = try ResourceURL("https://h:8443/a/b")
    #expect(try ResourceURL("http:x", relativeTo: base).requestURL == "http://x/")
    #expect(try ResourceURL("x", relativeTo: base).requestURL == "https://h:8443/a/x")
    for reference in ["ftp://h/", "javascript:0", "x:y"] {
      let error = #expect(throws: ResourceURLError.self) { try ResourceURL(reference, relativeTo: base) }
      #expect(error?.kind == .unsupportedScheme)
    }
  }

  @Test func `a URL has at most 8192 bytes, as written and as sent`() throws {
    let longest = "http://h/" + String(repeating: "a", count: 8192 - 9)
    #expect(try ResourceURL(longest).requestURL == longest)
    for text in [longest + "a", longest + "#", "http://h/" + String(repeating: " ", count: 3000) + "x"] {
      #expect(#expect(throws: ResourceURLError.self) { try ResourceURL(text) }?.kind == .tooLong)
    }
  }

  @Test func `a label that is too long in Punycode is refused`() {
    for count in [59, 60, 1000] {
      let text = "http://" + String(repeating: "é", count: count) + "/"
      #expect(#expect(throws: ResourceURLError.self) { try ResourceURL(text) }?.kind == .host)
    }
  }

  static let keys: [(text: String, ignoring: [String], key: String)] = [
    ("http://h/a?b=c#d", [], "http://h/a?b=c"),
    ("HTTP://H/%7euser/%e9%2F", [], "http://h/~user/%E9%2F"),
    ("http://h/a/./b/../c", [], "http://h/a/c"),
    ("http://h/a/%2E%2e/c", [], "http://h/c"),
    ("http://h/../../x", [], "http://h/x"),
    ("http://h/a/..", [], "http://h/"),
    ("http://h/a/b/.", [], "http://h/a/b/"),
    ("http://h/a//b/", [], "http://h/a//b/"),
    ("http://h/.hidden/..x/x..", [], "http://h/.hidden/..x/x.."),
    ("http://h/?a=../b/./c", [], "http://h/?a=../b/./c"),
    ("http://h?x/../y", [], "http://h/?x/../y"),
    ("http://h:80", [], "http://h/"),
    ("http://h/%zz%4", [], "http://h/%zz%4"),
    ("http://h/%%34%31", [], "http://h/%%341"),
    ("http://h/%4%31%2f%31", [], "http://h/%4%31%2F1"),
    ("http://h/a?b=1&sig=2&c=3", ["sig"], "http://h/a?b=1&c=3"),
    ("http://h/a?X-Amz-Date=1&X-Amz-Signature=2", ["X-Amz-*"], "http://h/a"),
    ("http://h/a?x=1", ["*"], "http://h/a"),
    ("http://h/a?", [], "http://h/a?"),
    ("http://h/a?", ["sig"], "http://h/a?"),
    ("http://h/a?", ["*"], "http://h/a"),
    ("http://h/a?s%69g=1&%62=%63", ["sig"], "http://h/a?b=c"),
    ("http://h/a?SIG=1&sigx=2&xsig", ["sig"], "http://h/a?SIG=1&sigx=2&xsig"),
    ("http://h/a?b&b&a", ["a"], "http://h/a?b&b"),
    ("http://h/a?abcbc=1&abc=2&ac=3&b=4", ["a*bc"], "http://h/a?ac=3&b=4"),
    ("http://h/a?utm_source=1&utm_=2&utm=3", ["utm_*", "x*y*z"], "http://h/a?utm=3"),
    ("http://h/a?a=1&&b=2", ["b"], "http://h/a?a=1&"),
  ]

  @Test(arguments: keys) func `the cache key is the safely normalized URL`(
    text: String, ignoring: [String], key: String
  )
    throws
  {
    #expect(try ResourceURL(text).cacheKey(ignoring: QueryNameFilter(ignoring)) == key)
  }
}
