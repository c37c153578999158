/// Reads a robots.txt: the rules of the group for one user agent (RFC 9309 section 2.2).
///
/// Reads what Protego, the parser of Scrapy, reads: common misspellings, rules without a colon, several groups for one
/// user agent, and the `Crawl-delay` that RFC 9309 leaves out.
struct RobotsFile {
  struct Rule {
    /// Normalized.
    var pattern: [UInt8]
    var isAnchored: Bool
    var isAllowed: Bool
    /// The value as it is in the file, cut if it is long; empty if the pattern tells it.
    var text: [UInt8]

    /// The longer pattern precedes, then the one that allows.
    var precedence: Int { 2 * (pattern.count + (isAnchored ? 1 : 0)) + (isAllowed ? 1 : 0) }
  }

  private static let maxText = 200

  private let userAgent: [UInt8]
  /// The rules of the group that fits best so far.
  private(set) var rules: [Rule] = []
  private(set) var crawlDelay: Duration?
  private var name: [UInt8] = []
  /// The length of that group's name; a name precedes `*`.
  private var score = 0
  /// Whether the lines belong to that group.
  private var isCurrent = false
  private var wasUserAgent = false

  /// - Parameter userAgent: the value of the User-Agent field.
  init(_ userAgent: String) { self.userAgent = userAgent.utf8.map(Self.lowercased) }

  mutating func read(_ file: ArraySlice<UInt8>) {
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    for line in file.dropFirst(file.starts(with: mark) ? mark.count : 0).split(whereSeparator: { $0 == 10 || $0 == 13 })
    {
      if let (name, value) = Self.directive(line) { read(name, value) }
    }
  }

  private mutating func read(_ name: Name, _ value: ArraySlice<UInt8>) {
    if name == .site { return }
    if name == .userAgent, !wasUserAgent { isCurrent = false }
    wasUserAgent = name == .userAgent
    guard !value.isEmpty else { return }
    switch name {
    case .userAgent: begin(value.map(Self.lowercased))
    case .allow where isCurrent:
      add(value, isAllowed: true)
      // The page of a folder is the folder.
      let page = "/index.html".utf8
      if value.suffix(page.count).elementsEqual(page) {
        add(value.dropLast(page.count - 1) + [UInt8(ascii: "$")], isAllowed: true)
      }
    case .disallow where isCurrent: add(value, isAllowed: false)
    case .crawlDelay where isCurrent:
      guard let seconds = Double(String(decoding: value, as: UTF8.self)), seconds >= 0, seconds.isFinite else { return }
      crawlDelay = .seconds(min(seconds, 86_400))
    case .allow, .disallow, .crawlDelay, .site, .other: break
    }
  }

  // MARK: - Groups

  /// Begins a group, or continues the one that fits best.
  private mutating func begin(_ agent: [UInt8]) {
    let isForAll = agent == [UInt8(ascii: "*")]
    let agent = isForAll ? agent : agent.filter { $0 != UInt8(ascii: "*") }
    if !agent.isEmpty, agent == name { return isCurrent = true }
    let score = isForAll ? 1 : 2 * lengthOfMatch(agent)
    guard score > self.score else { return }
    (name, self.score, isCurrent) = (agent, score, true)
    (rules, crawlDelay) = ([], nil)
  }

  /// The length of the name if it is in the user agent, at the start of a token.
  private func lengthOfMatch(_ name: [UInt8]) -> Int {
    guard !name.isEmpty, name.count <= userAgent.count else { return 0 }
    for start in 0...(userAgent.count - name.count) where userAgent[start] == name[0] {
      if start == 0 || !Self.isPartOfToken(userAgent[start - 1]), userAgent[start...].starts(with: name) {
        return name.count
      }
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

  // MARK: - Rules

  private mutating func add(_ value: ArraySlice<UInt8>, isAllowed: Bool) {
    addRule(value, isAllowed: isAllowed)
    // A dollar at the end may be a character of the path.
    if value.last == UInt8(ascii: "$") { addRule(value.dropLast() + Array("%24".utf8), isAllowed: isAllowed) }
  }

  private mutating func addRule(_ value: ArraySlice<UInt8>, isAllowed: Bool) {
    let isAnchored = value.last == UInt8(ascii: "$")
    var bytes = isAnchored ? value.dropLast() : value
    let isURL = value.starts(with: "http://".utf8) || value.starts(with: "https://".utf8)
    // A rule that is written as a URL is a path that begins with it.
    if isURL { bytes = [UInt8(ascii: "/")] + bytes }
    let pattern = RobotsPattern.normalized(bytes, keepingAsterisks: true)
    guard !pattern.isEmpty || isAnchored else { return }
    var text: [UInt8] = []
    if value.count > Self.maxText {
      // Not within a character.
      let cut = value.prefix(Self.maxText + 1)
      text = Array(cut[..<(cut.lastIndex { $0 & 0xC0 != 0x80 } ?? cut.startIndex)]) + Array("...".utf8)
    } else if isURL || !pattern.elementsEqual(isAnchored ? value.dropLast() : value) {
      text = Array(value)
    }
    rules.append(Rule(pattern: pattern, isAnchored: isAnchored, isAllowed: isAllowed, text: text))
  }

  // MARK: - Lines

  private enum Name {
    case userAgent, allow, disallow, crawlDelay
    /// A line about the whole site, which does not end a group.
    case site
    case other

    init?(_ words: some Sequence<ArraySlice<UInt8>>) {
      let text = Array(words.joined(separator: [UInt8(ascii: " ")]).prefix(16))
      switch String(decoding: text.map(RobotsFile.lowercased), as: UTF8.self) {
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
  private static func directive(_ line: ArraySlice<UInt8>) -> (Name, ArraySlice<UInt8>)? {
    let line = trimmed(line.prefix { $0 != UInt8(ascii: "#") })
    guard !line.isEmpty else { return nil }
    let colon = line.firstIndex(of: UInt8(ascii: ":"))
    if let colon {
      let value = line[(colon + 1)...]
      if let name = Name(CollectionOfOne(trimmed(line[..<colon]))) { return (name, trimmed(value)) }
      if value.first.map(isSpace) ?? true { return (.other, trimmed(value)) }
    }
    let words = line.split(maxSplits: 2, whereSeparator: isSpace)
    for count in 1...2 where words.count >= count {
      guard let name = Name(words.prefix(count)) else { continue }
      return (name, trimmed(line[words[count - 1].endIndex...]))
    }
    return colon == nil ? nil : (.other, [])
  }

  private static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let start = text.drop(while: isSpace)
    return start.lastIndex { !isSpace($0) }.map { start[...$0] } ?? []
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (9...12).contains(byte) }

  private static func lowercased(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
  }
}
