public import HTTPTypes
internal import Text

/// Validation of stored responses (RFC 9111 section 4.3).
public enum Validation {
  /// The conditional fields to send for a stored response with these headers; empty if it has no validator. The values
  /// are sent back unchanged (RFC 9110 sections 13.1.2 and 13.1.3).
  public static func requestFields(for stored: HeaderFields) -> HeaderFields {
    var fields: HeaderFields = [:]
    if let tag = entityTag(of: stored) { fields.append("if-none-match", tag.text) }
    if let date = lastModified(of: stored) { fields.append("if-modified-since", date) }
    return fields
  }

  /// The stored responses that a 304 updates (section 4.3.4), the one that it answers for first; `asked` is the one
  /// whose validators were sent. If it is empty, the request must be sent again without validators.
  public static func responsesUpdated(by notModified: HeaderFields, in stored: [CachedResponse], asked: Int) -> [Int] {
    guard stored.indices.contains(asked) else { return [] }
    let siblings = stored.indices.reversed().filter { $0 != asked }
    if let tag = entityTag(of: notModified) {
      // Weak comparison for this one: nginx sends a weak tag with a compressed 200 and a strong one with its 304.
      let confirmed = entityTag(of: stored[asked].headers).map(tag.matchesWeakly) ?? false
      let alike = siblings.filter { entityTag(of: stored[$0].headers).map(tag.matchesStrongly) ?? false }
      return (confirmed ? [asked] : []) + alike
    }
    if let date = lastModified(of: notModified), let storedDate = lastModified(of: stored[asked].headers) {
      return date.hasSameBytes(as: storedDate) ? [asked] : []
    }
    return [asked]
  }

  /// The value of If-Range to resume a transfer: a strong entity tag, or a modification date at least a minute before
  /// the answer was sent (RFC 9110 sections 13.1.5 and 8.8.2.2).
  public static func strongValidator(of headers: HeaderFields, receivedAt: Int) -> String? {
    if let tag = entityTag(of: headers) { return tag.isQuoted ? tag.text : nil }
    guard let modified = lastModified(of: headers), let changed = HTTPDate.parse(modified, now: receivedAt),
      let date = headers.values(of: "date").first.flatMap({ HTTPDate.parse($0, now: receivedAt) })
    else { return nil }
    return date - changed >= 60 ? modified : nil
  }

  static func entityTag(of headers: HeaderFields) -> EntityTag? { first("etag", of: headers).map(EntityTag.init) }

  static func lastModified(of headers: HeaderFields) -> String? { first("last-modified", of: headers) }

  /// A value with a control character, as a damaged cache may have it, cannot be sent.
  private static func first(_ name: String, of headers: HeaderFields) -> String? {
    headers.lines.first {
      $0.isNamed(name) && !$0.value.isEmpty && $0.value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
    }?.value
  }
}

/// An entity tag as received, quoted or not, compared byte by byte (RFC 9110 section 8.8.3).
struct EntityTag {
  let text: String

  var isStrong: Bool { !text.utf8.starts(with: "W/".utf8) }

  /// Whether the tag begins with a quote, as the grammar requires, and so without a weakness mark.
  var isQuoted: Bool { text.utf8.first == UInt8(ascii: "\"") }

  func matchesStrongly(_ other: Self) -> Bool { isStrong && text.hasSameBytes(as: other.text) }

  func matchesWeakly(_ other: Self) -> Bool { opaque.elementsEqual(other.opaque) }

  private var opaque: Substring.UTF8View { text.utf8.dropFirst(isStrong ? 0 : 2) }
}
