/// Whose cookies a file holds, as far as that tells loads apart: what was fetched with some is not for others.
///
/// Which of them are sent curl decides. Of that it is enough to know to which hosts, so that a cookie too many, such as one
/// that has expired, keeps apart what need not be.
public struct CookieFile: Sendable {
  /// The lines of each domain; those of none count for all hosts.
  private var lines: [Substring: String] = [:]

  /// - Parameter text: the file's content: a line of seven fields with tabs between for each cookie, or `Set-Cookie` lines.
  public init(_ text: String) {
    for line in text.split(whereSeparator: \.isNewline) {
      let cookie = line.hasPrefix(Self.notForScripts) ? line.dropFirst(Self.notForScripts.count) : line
      guard !cookie.hasPrefix("#"), cookie.contains(where: { !$0.isWhitespace }) else { continue }
      let fields = cookie.split(separator: "\t", omittingEmptySubsequences: false)
      let domain = fields.count < 6 ? "" : fields[0].lowercased()
      lines[domain.drop { $0 == "." }, default: ""] += "cookie:\(cookie)\n"
    }
  }

  /// How Netscape's format marks a cookie that is kept from scripts.
  private static let notForScripts = "#HttpOnly_"

  /// The lines whose cookies may be sent to a host, in lower case; empty for none.
  func lines(for host: String) -> String {
    guard !lines.isEmpty else { return "" }
    var text = lines[""] ?? ""
    var domain = host[...]
    while !domain.isEmpty {
      text += lines[domain] ?? ""
      domain = domain.drop { $0 != "." }.dropFirst()
    }
    return text
  }
}
