import HTTPTypes
import Testing

@testable import Loading

@Suite struct `Rules of robots.txt` {
  struct Case: Sendable, CustomTestStringConvertible {
    var file: String
    var target: String
    var isAllowed: Bool
    var userAgent: String
    var testDescription: String { "\(target) of \(userAgent) in \(file.debugDescription)" }

    init(_ file: String, _ target: String, _ isAllowed: Bool, as userAgent: String = "ImageWorker/0.1.0") {
      (self.file, self.target, self.isAllowed, self.userAgent) = (file, target, isAllowed, userAgent)
    }
  }

  static let cases = [
    Case("", "/a.jpg", true),
    Case("User-agent: *\nDisallow: /", "/a.jpg", false),
    Case("User-agent: *\nDisallow: /", "/robots.txt", true),
    Case("User-agent: *\nDisallow:", "/a.jpg", true),
    Case("User-agent: *\nDisallow: /private", "/private/a.jpg", false),
    Case("User-agent: *\nDisallow: /private", "/public/a.jpg", true),
    Case("Disallow: /", "/a.jpg", true),
    // The longest rule decides; of two of one length, the one that allows.
    Case("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c.jpg", true),
    Case("User-agent: *\nAllow: /a\nDisallow: /a/b", "/a/b/c.jpg", false),
    Case("User-agent: *\nDisallow: /page\nAllow: /page", "/page", true),
    // Wildcards.
    Case("User-agent: *\nDisallow: /*.gif$", "/a/b.gif", false),
    Case("User-agent: *\nDisallow: /*.gif$", "/a/b.gif?x", true),
    Case("User-agent: *\nDisallow: /a*b*c", "/a-b-c-d", false),
    Case("User-agent: *\nDisallow: /a*b*c", "/a-c-b", true),
    Case("User-agent: *\nDisallow: /a$b", "/a$b/c", false),
    Case("User-agent: *\nDisallow: *", "/", false),
    Case("User-agent: *\nDisallow: /***************************b", "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", true),
    // The same characters in other encodings.
    Case("User-agent: *\nDisallow: /ä", "/%C3%A4", false),
    Case("User-agent: *\nDisallow: /%7Euser", "/~user/a", false),
    Case("User-agent: *\nDisallow: /a%2fb", "/a/b", true),
    Case("User-agent: *\nDisallow: /a?b=c", "/a?b=c&d", false),
    // Groups.
    Case("User-agent: ImageWorker\nAllow: /\n\nUser-agent: *\nDisallow: /", "/a", true),
    Case("User-agent: *\nDisallow: /\n\nUser-agent: imageworker\nDisallow:", "/a", true),
    Case("User-agent: other\nUser-agent: imageworker\nDisallow: /", "/a", false),
    Case("User-agent: worker\nDisallow: /", "/a", true),
    Case("User-agent: a\nSitemap: /x\nUser-agent: imageworker\nDisallow: /", "/a", false),
    Case(
      "User-agent: imageworker\nDisallow: /a\nUser-agent: x\nDisallow: /b\nUser-agent: imageworker\nDisallow: /c", "/c",
      false),
    Case("User-agent: GPTBot\nDisallow: /", "/a", false, as: "Mozilla/5.0 (compatible; GPTBot/1.0)"),
    Case("User-agent: bot\nDisallow: /", "/a", true, as: "MyBot/1.0"),
    // What people write.
    Case("\u{FEFF}user-AGENT : *\r\nDISALLOW :/a # comment\r\r", "/a", false),
    Case("Useragent: *\nDissallow /a", "/a", false),
    Case("User-agent: *\nDisallow: http://example.com/a", "/a", true),
  ]

  @Test(arguments: cases) func `a target is allowed or refused`(_ test: Case) {
    let rules = RobotsRules(Array(test.file.utf8), for: test.userAgent)
    #expect((rules.refusal(of: test.target) == nil) == test.isAllowed)
  }

  @Test func `a refusal names its rule`() {
    let rules = RobotsRules(Array("User-agent: *\nDisallow: /a*b".utf8), for: "x")
    #expect(rules.refusal(of: "/a/b") == "Disallow: /a*b")
    #expect(RobotsRules.disallowingAll.refusal(of: "/") == "Disallow: /")
    #expect(RobotsRules.allowingAll.refusal(of: "/") == nil)
  }

  @Test(
    arguments: [
      ("Crawl-delay: 2.5", Duration.milliseconds(2500)), ("crawl delay: 0", .zero),
      ("Crawl-delay: 1e99", .seconds(86_400)),
      ("Crawl-delay: -1", nil), ("Crawl-delay: soon", nil), ("Disallow:", nil),
    ] as [(String, Duration?)]) func `the delay is that of the group`(line: String, delay: Duration?)
  {
    let file = "User-agent: a\nCrawl-delay: 9\n\nUser-agent: *\n\(line)"
    #expect(RobotsRules(Array(file.utf8), for: "imageworker").crawlDelay == delay)
  }

  @Test func `a huge file is read up to its limit`() {
    let rules = String(repeating: "Disallow: /x\n", count: 60_000)
    let file = Array("User-agent: *\nDisallow: /first\n\(rules)Disallow: /last\n".utf8)
    let parsed = RobotsRules(file, for: "a")
    #expect(parsed.refusal(of: "/first") != nil)
    #expect(parsed.refusal(of: "/last") == nil)
  }
}

@Suite struct `Header fields that refuse the use of an image` {
  @Test(
    arguments: [
      ("x-robots-tag", "noai", "X-Robots-Tag: noai"), ("x-robots-tag", "all, NoImageAI", "X-Robots-Tag: noimageai"),
      ("x-robots-tag", "imageworker: noai", "X-Robots-Tag: noai"), ("x-robots-tag", "otherbot: noai", nil),
      ("x-robots-tag", "unavailable_after: 25 Jun 2030 15:00:00 PST, noindex", "X-Robots-Tag: noindex"),
      ("x-robots-tag", "nofollow", nil), ("x-robots-tag", "", nil),
      ("x-robots-tag", "None", "X-Robots-Tag: none"), ("x-robots-tag", "otherbot: none", nil),
      ("x-robots-tag", "max-image-preview:none", nil), ("x-robots-tag", "max-snippet: -1, none", "X-Robots-Tag: none"),
      ("x-robots-tag", "otherbot: max-image-preview:none, noai", nil),
      ("content-usage", "train-ai=n", "Content-Usage: train-ai=n"),
      ("content-usage", "search=y, train-ai=n;x", "Content-Usage: train-ai=n"),
      ("content-usage", "train-ai=y", nil), ("content-usage", "search=n", nil), ("x-other", "noai", nil),
    ] as [(String, String, String?)])
  func `a field refuses the image or not`(name: String, value: String, refusal: String?) {
    #expect(UsageDirectives.refusal(in: [name: value], userAgent: "ImageWorker/0.1.0") == refusal)
  }
}
