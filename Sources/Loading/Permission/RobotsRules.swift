/// The rules of a robots.txt for one user agent (RFC 9309).
///
/// Reads what Protego, the parser of Scrapy, reads: common misspellings, rules without a colon, several groups for one
/// user agent, and the `Crawl-delay` that RFC 9309 leaves out.
struct RobotsRules: Sendable {
  /// The part of a file that is read (RFC 9309 section 2.5 asks for at least 500 KiB).
  static let maxBytes = 512 << 10
  /// The number of rules that are kept. A file of the longest length can have more only with rules of a few bytes.
  private static let maxRules = 20_000

  /// The rules, the most specific first.
  private var rules: [RobotsRule] = []
  /// The time between two requests.
  private(set) var crawlDelay: Duration?

  /// Everything is allowed: the server has no robots.txt (section 2.3.1.3).
  static let allowingAll = RobotsRules()
  /// Everything is disallowed: the server could not be asked (section 2.3.1.4).
  static var disallowingAll: RobotsRules {
    var rules = RobotsRules()
    rules.rules = [RobotsRule("/", isAllowed: false)].compactMap(\.self)
    return rules
  }

  private init() {}

  /// - Parameter userAgent: the value of the User-Agent field.
  init(_ file: [UInt8], for userAgent: String) {
    var groups = RobotsGroups(userAgent)
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    let content = file.prefix(Self.maxBytes).dropFirst(file.starts(with: mark) ? mark.count : 0)
    let text = String(decoding: content, as: UTF8.self)
    text.unicodeScalars.split { $0 == "\n" || $0 == "\r" }.forEach { line in
      if let (name, value) = RobotsLine.directive(String(line)) { groups.read(name, value) }
    }
    let group = groups.matching
    rules = group.rules.prefix(Self.maxRules).sorted { $0.precedes($1) }
    crawlDelay = group.crawlDelay
  }

  /// The rule that disallows a request; nil if it is allowed. The longest rule that matches decides. If two have the
  /// same length, the one that allows decides (section 2.2.2).
  ///
  /// - Parameter target: the path and query of the URL.
  func refusal(of target: String) -> String? {
    let path = RobotsPattern.normalized(Array(target.utf8), keepingAsterisks: false)
    guard path != Array("/robots.txt".utf8), let rule = rules.first(where: { $0.pattern.matches(path) }) else {
      return nil
    }
    return rule.isAllowed ? nil : "Disallow: \(rule.text)"
  }
}

/// A line that allows or disallows.
struct RobotsRule: Sendable {
  let pattern: RobotsPattern
  let isAllowed: Bool
  /// The value as it is in the file, cut if it is long.
  let text: String

  /// Nil for an empty value, which is no rule.
  init?(_ value: String, isAllowed: Bool) {
    guard let pattern = RobotsPattern(value) else { return nil }
    self.pattern = pattern
    self.isAllowed = isAllowed
    text = value.count > 200 ? value.prefix(200) + "..." : value
  }

  func precedes(_ other: RobotsRule) -> Bool {
    (pattern.length, isAllowed ? 1 : 0) > (other.pattern.length, other.isAllowed ? 1 : 0)
  }
}

/// The groups of a robots.txt, of which only those that may match the user agent are kept.
private struct RobotsGroups {
  struct Group {
    var rules: [RobotsRule] = []
    var crawlDelay: Duration?
  }

  private let userAgent: [UInt8]
  private var groups: [String: Group] = [:]
  /// The names of the current group.
  private var current: [String] = []
  private var wasUserAgent = false

  init(_ userAgent: String) { self.userAgent = Array(userAgent.lowercased().utf8) }

  mutating func read(_ name: RobotsLine.Name, _ value: String) {
    if name == .site { return }
    if name == .userAgent, !wasUserAgent { current = [] }
    wasUserAgent = name == .userAgent
    guard !value.isEmpty else { return }
    switch name {
    case .userAgent:
      let agent = value.lowercased()
      for agent in agent == "*" ? [agent] : Set([agent, agent.filter { $0 != "*" }]).sorted()
      where isMatching(agent) && !current.contains(agent) {
        current.append(agent)
        groups[agent] = groups[agent] ?? Group()
      }
    case .allow:
      add(value, isAllowed: true)
      // The page of a folder is the folder.
      if value.hasSuffix("/index.html") { add(value.dropLast(10) + "$", isAllowed: true) }
    case .disallow: add(value, isAllowed: false)
    case .crawlDelay:
      guard let seconds = Double(value), seconds >= 0, seconds.isFinite else { return }
      for agent in current { groups[agent]?.crawlDelay = .seconds(min(seconds, 86_400)) }
    case .site, .other: break
    }
  }

  private mutating func add(_ value: some StringProtocol, isAllowed: Bool) {
    // A dollar at the end may be a character of the path.
    let values =
      value.contains("$")
      ? [String(value), value.split(separator: "$", omittingEmptySubsequences: false).joined(separator: "%24")]
      : [String(value)]
    for rule in values.compactMap({ RobotsRule($0, isAllowed: isAllowed) }) {
      for agent in current { groups[agent]?.rules.append(rule) }
    }
  }

  private func isMatching(_ agent: String) -> Bool { !agent.isEmpty && score(of: agent) > 0 }

  /// The length of the name if it is in the user agent, at the start of a token.
  private func score(of agent: String) -> Int {
    if agent == "*" { return 1 }
    let name = Array(agent.utf8)
    guard name.count <= userAgent.count else { return 0 }
    for start in 0...(userAgent.count - name.count) where userAgent[start...].starts(with: name) {
      if start == 0 || !Self.isPartOfToken(userAgent[start - 1]) { return name.count }
    }
    return 0
  }

  private static func isPartOfToken(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
      UInt8(ascii: "_"):
      true
    default: byte >= 0x80
    }
  }

  /// The group with the longest name.
  var matching: Group {
    groups.max { (score(of: $0.key), $1.key == "*" ? 1 : 0) < (score(of: $1.key), $0.key == "*" ? 1 : 0) }?.value
      ?? Group()
  }
}

/// A line of a robots.txt.
private enum RobotsLine {
  enum Name {
    case userAgent, allow, disallow, crawlDelay
    /// A line about the whole site, which does not end a group.
    case site
    case other

    init?(_ text: String) {
      switch text {
      case "user-agent", "useragent", "user agent": self = .userAgent
      case "allow": self = .allow
      case "disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw": self = .disallow
      case "crawl-delay", "crawl delay": self = .crawlDelay
      case "sitemap", "sitemaps", "site-map", "host": self = .site
      case "request-rate", "request rate", "visit-time", "visit time": self = .other
      default: return nil
      }
    }
  }

  /// The name and the value of a line without its comment; nil for an empty line.
  static func directive(_ line: String) -> (Name, String)? {
    let line = trimmed(line.prefix { $0 != "#" })
    guard !line.isEmpty else { return nil }
    if let colon = line.firstIndex(of: ":") {
      let value = line[line.index(after: colon)...]
      if let name = Name(trimmed(line[..<colon]).lowercased()) { return (name, trimmed(value)) }
      if value.first?.isWhitespace ?? true { return (.other, trimmed(value)) }
    }
    let words = line.split(whereSeparator: \.isWhitespace)
    for count in 1...2 where words.count >= count {
      if let name = Name(words.prefix(count).joined(separator: " ").lowercased()) {
        return (name, words.dropFirst(count).joined(separator: " "))
      }
    }
    return line.contains(":") ? (.other, "") : nil
  }

  private static func trimmed(_ text: some StringProtocol) -> String {
    let start = text.drop(while: \.isWhitespace)
    return start.lastIndex { !$0.isWhitespace }.map { String(start[...$0]) } ?? ""
  }
}
