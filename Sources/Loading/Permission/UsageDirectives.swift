internal import HTTPTypes
internal import Platform

/// The header fields by which a server refuses the use of an image for datasets and training.
enum UsageDirectives {
  /// The values of X-Robots-Tag that img2dataset obeys by default, too, and `none`, which means noindex and nofollow
  /// (https://developers.google.com/search/docs/crawling-indexing/robots-meta-tag).
  private static let refusingTags: Set = ["noai", "noimageai", "noindex", "noimageindex", "none"]
  /// The categories of Content-Usage (draft-ietf-aipref-attach) whose value `n` refuses it.
  private static let refusedUses: Set = ["train-ai", "train-genai", "bots"]

  /// The field that refuses the image, as `name: value`; nil if none does.
  ///
  /// - Parameter userAgent: a directive that names another user agent does not apply.
  static func refusal(in headers: HeaderFields, userAgent: String) -> String? {
    for value in headers.values(of: "x-robots-tag") {
      if let tag = refusingTag(in: value, userAgent: userAgent) { return "X-Robots-Tag: \(tag)" }
    }
    for value in headers.values(of: "content-usage") {
      for member in value.lowercased().split(separator: ",") {
        let parts = member.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " && $0 != "\t" } }
        if parts.count == 2, refusedUses.contains(parts[0]), parts[1].prefix(while: { $0 != ";" }) == "n" {
          return "Content-Usage: \(parts[0])=n"
        }
      }
    }
    return nil
  }

  /// `noai`, `a, noai`, or `name: noai` for the user agent with that name, or for all if it is `*`. Semicolons
  /// separate tags, too, and so do blanks between tags without a value.
  private static func refusingTag(in value: String, userAgent: String) -> String? {
    var applies = true
    // A weekday is followed by a comma and the rest of its date: `unavailable_after: Sat, 25 Jun 2050 15:00:00 GMT`
    // (RFC 822), `Saturday, 25-Jun-50 15:00:00 GMT` (RFC 850). The rest is no tag, and must not be read as a name.
    var isInDate = false
    for part in value.lowercased().split(whereSeparator: { $0 == "," || $0 == ";" }) {
      var tag = part.drop { $0 == " " || $0 == "\t" }
      if isInDate {
        isInDate = false
        if tag.first?.isNumber == true { continue }
      }
      if let colon = tag.firstIndex(of: ":"), !hasValue(tag[..<colon]) {
        let name = tag[..<colon].prefix { $0 != " " && $0 != "\t" }
        applies = name == "*" || userAgent.lowercased().has(name)
        tag = tag[tag.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
      }
      if let colon = tag.firstIndex(of: ":"), hasValue(tag[..<colon]) {
        isInDate = tag[..<colon] == "unavailable_after"
        continue
      }
      let words = tag.split { $0 == " " || $0 == "\t" }
      if applies, let word = words.first(where: { refusingTags.contains(String($0)) }) { return String(word) }
    }
    return nil
  }

  /// Whether the directive has a value. It names no user agent, and its value is no tag: max-image-preview:none permits
  /// indexing.
  private static func hasValue(_ directive: Substring) -> Bool {
    directive == "unavailable_after" || directive.hasPrefix("max-")
  }
}
