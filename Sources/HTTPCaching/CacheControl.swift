internal import HTTPTypes

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

/// The cache directives in the host's own request headers.
struct RequestDirectives {
  /// Whether the request is for the whole resource, without a range and without conditions.
  var areForWhole: Bool { !isConditional && !hasRange }

  /// `Pragma: no-cache` counts as `no-cache` if there is no Cache-Control (RFC 9111 section 5.4).
  private(set) var control = CacheControl()
  /// Whether the host validates itself.
  private(set) var isConditional = false
  /// Whether the host requests a range. A part is not an image to store, and cannot be cut from a stored one here.
  private(set) var hasRange = false

  init(_ headers: HeaderFields) {
    var hasCacheControl = false
    var pragmas: [String] = []
    for line in headers.lines {
      switch line.name {
      case "cache-control": hasCacheControl = true
      case "pragma": pragmas.append(line.value)
      case "range": hasRange = true
      default: isConditional = isConditional || Self.conditions.contains(line.name)
      }
    }
    if hasCacheControl {
      control = CacheControl(headers.values(of: "cache-control"))
    } else if !pragmas.isEmpty {
      control.noCache = CacheControl(pragmas).noCache
    }
  }

  /// Whether the cache evaluates a field of this name, which must be in lower case.
  static func isRelevant(_ name: String) -> Bool {
    ["cache-control", "pragma", "range"].contains(name) || conditions.contains(name)
  }

  /// RFC 9110 section 13.1.
  private static let conditions = ["if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since"]

  /// The mode with the host's own validation considered. A host that validates itself bypasses the cache, and in the
  /// default mode stores nothing (Fetch standard, HTTP-network-or-cache fetch), unless its mode explicitly asks for
  /// cached responses.
  func effectiveMode(_ mode: CacheMode) -> CacheMode {
    guard isConditional else { return mode }
    return switch mode {
    case .default: .noStore
    case .noCache, .refresh: .reload
    case .noStore, .reload, .forceCache, .onlyIfCached: mode
    }
  }
}
