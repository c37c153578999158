import HTTPTypes
import Platform
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
    let rules = String(repeating: "Disallow: /x\n", count: 50_000)
    let file = Array("User-agent: *\nDisallow: /first\n\(rules)Disallow: /last\n".utf8)
    let parsed = RobotsRules(file, for: "a")
    #expect(parsed.refusal(of: "/first") != nil)
    #expect(parsed.refusal(of: "/last") == nil)
  }
}

@Suite struct `Many rules of robots.txt` {
  /// 20,000 rules of which none decides, and those given.
  private func rules(_ lines: String..., others: (Int) -> String) -> RobotsRules {
    let file = (["User-agent: *"] + lines + (0..<20_000).map { "Disallow: " + others($0) }).joined(separator: "\n")
    return RobotsRules(Array(file.utf8), for: "ImageWorker/0.1.0")
  }

  @Test func `prefixes are found among many`() {
    let rules = rules("Disallow: /photos/b", "Allow: /photos/b/free") { "/a/\($0)" }
    let rest = String(repeating: "x", count: 8000)
    #expect(rules.refusal(of: "/photos/b/\(rest)") == "Disallow: /photos/b")
    #expect(rules.refusal(of: "/photos/b/free/\(rest)") == nil)
    #expect(rules.refusal(of: "/a/19999/\(rest)") == "Disallow: /a/19999")
    #expect(!rules.isQuick(for: "/"))
  }

  @Test func `wildcards are found among many`() {
    let rules = rules("Disallow: /*secret*.jpg$") { "/*/b\($0)*z" }
    let rest = String(repeating: "x/y", count: 2600)
    #expect(rules.refusal(of: "/\(rest)/secret/a.jpg") == "Disallow: /*secret*.jpg$")
    #expect(rules.refusal(of: "/\(rest)/secret/a.jpg?size=1") == nil)
    #expect(rules.refusal(of: "/\(rest)/b77/z") == "Disallow: /*/b77*z")
  }

  @Test func `a pattern that matches almost everywhere takes one pass`() {
    let part = String(repeating: "a", count: 1000)
    let rules = RobotsRules(Array("User-agent: *\nDisallow: /*\(part)b*\(part)b*c".utf8), for: "x")
    #expect(rules.refusal(of: "/" + String(repeating: "a", count: 8000) + "bc") == nil)
    #expect(rules.refusal(of: "/\(part)b\(part)b\(part)c") != nil)
  }

  @Test func `a long rule is told by its beginning`() {
    let long = "/" + String(repeating: "ä", count: 300)
    let rules = RobotsRules(Array("User-agent: *\nDisallow: \(long)".utf8), for: "x")
    let text = rules.refusal(of: "/" + String(repeating: "%C3%A4", count: 300))
    #expect(text == "Disallow: /" + String(repeating: "ä", count: 99) + "...")
  }

  @Test func `rules of other user agents take no memory`() {
    let others = String(repeating: "Disallow: /x\n", count: 30_000)
    let file = Array("User-agent: other\n\(others)\nUser-agent: imageworker\nDisallow: /a\n".utf8)
    #expect(RobotsRules(file, for: "imageworker").byteCount < 20)
  }
}

@Suite struct `The permissions of origins` {
  private let now = Instant.now

  private func origin(_ number: Int) -> Origin { Origin(scheme: "http", host: "h\(number)", port: 80) }

  private func job(_ number: UInt64) -> JobID { JobID(slot: Int32(number), serial: number) }

  /// Rules of about half a megabyte, all for the user agent.
  private static let large = RobotsRules(
    Array(("User-agent: *\n" + (0..<30_000).map { "Disallow: /\($0)\n" }.joined()).utf8), for: "x")

  @Test func `10,000 origins with long files stay under 16 MB`() {
    var permissions = Permissions(userAgent: "x")
    for number in 0..<10_000 {
      permissions.remember(Self.large, of: origin(number), now: now)
      #expect(permissions.byteCount <= Permissions.maxBytes)
    }
    #expect(permissions.count > 20)
    #expect(permissions.rules(of: origin(9999), now: now) != nil)
    #expect(permissions.rules(of: origin(0), now: now) == nil)
  }

  @Test func `10,000 origins with short files are all remembered`() {
    var permissions = Permissions(userAgent: "x")
    for number in 0..<10_000 { permissions.remember(.allowingAll, of: origin(number), now: now) }
    #expect(permissions.count == 10_000)
  }

  @Test func `rules that are used stay, the others go`() {
    var permissions = Permissions(userAgent: "x", maxBytes: 3 * Permissions.overhead)
    for number in 1...3 { permissions.remember(.allowingAll, of: origin(number), now: now) }
    _ = permissions.rules(of: origin(1), now: now)
    permissions.remember(.allowingAll, of: origin(4), now: now)
    #expect((1...4).map { permissions.rules(of: origin($0), now: now) != nil } == [true, false, true, true])
  }

  @Test func `rules that are larger than the budget stay alone`() {
    var permissions = Permissions(userAgent: "x", maxBytes: 1000)
    permissions.remember(.allowingAll, of: origin(1), now: now)
    permissions.remember(Self.large, of: origin(2), now: now)
    #expect(permissions.count == 1 && permissions.rules(of: origin(2), now: now) != nil)
    permissions.remember(.allowingAll, of: origin(3), now: now)
    #expect(permissions.count == 1 && permissions.rules(of: origin(3), now: now) != nil)
  }

  @Test func `rules are used for a day`() {
    var permissions = Permissions(userAgent: "x")
    permissions.remember(.allowingAll, of: origin(1), now: now)
    #expect(permissions.rules(of: origin(1), now: now + .seconds(86_399)) != nil)
    #expect(permissions.rules(of: origin(1), now: now + .seconds(86_400)) == nil)
    permissions.remember(.allowingAll, of: origin(1), now: now + .seconds(86_400))
    #expect(permissions.byteCount == Permissions.overhead)
  }

  @Test func `a file that no job waits for is given up`() {
    var permissions = Permissions(userAgent: "x")
    let load = LoadID(slot: 0, serial: 7)
    permissions.begin(load, of: origin(1))
    permissions.wait(job(1), for: origin(1))
    permissions.wait(job(2), for: origin(1))
    #expect(permissions.leave(origin(1)) == nil)
    #expect(permissions.leave(origin(1)) == load)
    #expect(permissions.load(of: origin(1)) == nil)
    #expect(permissions.end(load, of: origin(1)) == nil)
  }

  @Test func `all jobs learn the end of the file that they wait for`() {
    var permissions = Permissions(userAgent: "x")
    let (load, other) = (LoadID(slot: 0, serial: 7), LoadID(slot: 0, serial: 8))
    permissions.begin(load, of: origin(1))
    for number in 1...3 { permissions.wait(job(UInt64(number)), for: origin(1)) }
    #expect(permissions.end(other, of: origin(1)) == nil)
    #expect(permissions.end(load, of: origin(1)) == [job(1), job(2), job(3)])
    #expect(permissions.load(of: origin(1)) == nil)
  }
}

@Suite struct `Header fields that refuse the use of an image` {
  @Test(
    arguments: [
      ("x-robots-tag", "noai", "X-Robots-Tag: noai"), ("x-robots-tag", "all, NoImageAI", "X-Robots-Tag: noimageai"),
      ("x-robots-tag", "imageworker: noai", "X-Robots-Tag: noai"), ("x-robots-tag", "otherbot: noai", nil),
      ("x-robots-tag", "unavailable_after: 25 Jun 2030 15:00:00 PST, noindex", "X-Robots-Tag: noindex"),
      ("x-robots-tag", "unavailable_after: Saturday, 25-Jun-2050 15:00:00 GMT, noai", "X-Robots-Tag: noai"),
      ("x-robots-tag", "unavailable_after: Sat, 25 Jun 2050 15:00:00 GMT,noindex", "X-Robots-Tag: noindex"),
      ("x-robots-tag", "unavailable_after: 2050-06-25T15:00:00Z, noai", "X-Robots-Tag: noai"),
      ("x-robots-tag", "unavailable_after: Saturday, 25-Jun-2050 15:00:00 GMT, otherbot: noai", nil),
      ("x-robots-tag", "unavailable_after: Saturday, 25-Jun-2050 15:00:00 GMT", nil),
      ("x-robots-tag", "otherbot: unavailable_after: Saturday, 25-Jun-2050 15:00:00 GMT, noai", nil),
      ("x-robots-tag", "imageworker: unavailable_after: Sat, 25 Jun 2050 15:00:00 GMT, noai", "X-Robots-Tag: noai"),
      ("x-robots-tag", "nofollow", nil), ("x-robots-tag", "", nil),
      ("x-robots-tag", "noindex;nofollow", "X-Robots-Tag: noindex"),
      ("x-robots-tag", "nofollow noindex", "X-Robots-Tag: noindex"), ("x-robots-tag", "* : noai", "X-Robots-Tag: noai"),
      ("x-robots-tag", "otherbot: all; noai", nil), ("x-robots-tag", "otherbot: noai; *: none", "X-Robots-Tag: none"),
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
