/// The Cache-Control directives that matter to a private cache, of a request or of a response (RFC 9111 section 5.2,
/// RFC 5861, RFC 8246).
///
/// Names are case-insensitive, and values may be quoted. If a directive occurs twice, the first one counts. An age that
/// is not a number of seconds counts as 0 in `max-age` and as absent elsewhere, which is the cautious reading. Ages
/// over 2^31 count as 2^31. A list of fields after `no-cache` is ignored: the directive applies to the whole response.
struct CacheControl: Equatable {
  /// The largest number of seconds; greater ones count as this one (RFC 9111 section 1.2.2).
  static let maxSeconds = 1 << 31

  var maxAge: Int?
  var noCache = false
  var noStore = false
  var mustRevalidate = false
  var mustUnderstand = false
  var isPublic = false
  var isPrivate = false
  var immutable = false
  var staleWhileRevalidate: Int?
  var staleIfError: Int?
  /// In requests only. Without a value, any staleness is accepted.
  var maxStale: Int?
  var minFresh: Int?
  var onlyIfCached = false

  init() {}

  /// Parses the field's lines in their order.
  init(_ lines: some Sequence<String>) {
    for line in lines {
      var reader = DirectiveReader(line)
      while let directive = reader.next() { apply(directive) }
    }
  }

  private mutating func apply(_ directive: DirectiveReader.Directive) {
    switch directive.name {
    case "max-age": maxAge = maxAge ?? Self.seconds(directive.value) ?? 0
    case "no-cache": noCache = true
    case "no-store": noStore = true
    case "must-revalidate": mustRevalidate = true
    case "must-understand": mustUnderstand = true
    case "public": isPublic = true
    case "private": isPrivate = true
    case "immutable": immutable = true
    case "stale-while-revalidate": staleWhileRevalidate = staleWhileRevalidate ?? Self.seconds(directive.value)
    case "stale-if-error": staleIfError = staleIfError ?? Self.seconds(directive.value)
    case "max-stale": maxStale = maxStale ?? (directive.value == nil ? .max : Self.seconds(directive.value))
    case "min-fresh": minFresh = minFresh ?? Self.seconds(directive.value)
    case "only-if-cached": onlyIfCached = true
    default: break
    }
  }

  /// Parses digits only (RFC 9111 section 1.2.2).
  static func seconds(_ text: (some StringProtocol)?) -> Int? {
    guard let text, !text.isEmpty else { return nil }
    var seconds = 0
    for digit in text.utf8 {
      guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9") else { return nil }
      seconds = min(seconds * 10 + Int(digit - UInt8(ascii: "0")), maxSeconds)
    }
    return seconds
  }
}

/// Splits a line of Cache-Control at the commas outside quoted strings.
private struct DirectiveReader {
  struct Directive {
    let name: String
    let value: String?
  }

  private var rest: ArraySlice<UInt8>

  init(_ line: String) { rest = Array(line.utf8)[...] }

  mutating func next() -> Directive? {
    while let first = rest.first, first == UInt8(ascii: ",") || Self.isSpace(first) { rest.removeFirst() }
    guard !rest.isEmpty else { return nil }
    let name = rest.prefix { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: ",") && !Self.isSpace($0) }
    rest = rest.dropFirst(name.count)
    let lowercased = String(decoding: name, as: UTF8.self).lowercased()
    guard rest.first == UInt8(ascii: "=") else {
      // After a space before `=`, the rest is not a value of this directive, which then has none.
      let junk = rest.prefix { $0 != UInt8(ascii: ",") }
      rest = rest.dropFirst(junk.count)
      return Directive(name: lowercased, value: junk.contains { !Self.isSpace($0) } ? "" : nil)
    }
    rest.removeFirst()
    let value = quotedString() ?? ""
    let tail = rest.prefix { $0 != UInt8(ascii: ",") }
    rest = rest.dropFirst(tail.count)
    var token = tail
    while let last = token.last, Self.isSpace(last) { token.removeLast() }
    return Directive(name: lowercased, value: value + String(decoding: token, as: UTF8.self))
  }

  /// Consumes a quoted string and resolves its escapes. A quote that is never closed is not a quote, so that
  /// restrictions after it count.
  private mutating func quotedString() -> String? {
    guard rest.first == UInt8(ascii: "\"") else { return nil }
    var content: [UInt8] = []
    var index = rest.index(after: rest.startIndex)
    while index < rest.endIndex {
      let byte = rest[index]
      index = rest.index(after: index)
      if byte == UInt8(ascii: "\"") {
        rest = rest[index...]
        return String(decoding: content, as: UTF8.self)
      }
      if byte == UInt8(ascii: "\\"), index < rest.endIndex {
        content.append(rest[index])
        index = rest.index(after: index)
      } else {
        content.append(byte)
      }
    }
    return nil
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
}
