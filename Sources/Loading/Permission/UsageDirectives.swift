internal import HTTPTypes

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

  /// `noai`, `a, noai`, or `name: noai` for the user agent with that name.
  private static func refusingTag(in value: String, userAgent: String) -> String? {
    var applies = true
    for part in value.lowercased().split(separator: ",") {
      var tag = part.drop { $0 == " " || $0 == "\t" }
      if let colon = tag.firstIndex(of: ":") {
        let name = tag[..<colon]
        // These do not name a user agent, and their value is no tag: max-image-preview:none permits indexing.
        if name == "unavailable_after" || name.hasPrefix("max-") { continue }
        applies = userAgent.lowercased().contains(name)
        tag = tag[tag.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
      }
      let word = tag.prefix { $0 != " " && $0 != "\t" }
      if applies, refusingTags.contains(String(word)) { return String(word) }
    }
    return nil
  }
}
