internal import HTTPTypes
internal import Text

/// A filter of the stored responses to clear. The variants of a matching original match, too.
public enum ClearFilter: Sendable, Equatable {
  case all
  /// The responses that were loaded from this URL or that a load of it would find: those under `key`, which other
  /// spellings of the URL may share.
  case url(String, key: String)
  case key(String)
  /// Keys with this prefix, compared by bytes.
  case prefix(String)
  /// The host of the URL; nil as the port means any port.
  case host(String, port: Int?)
  /// Stored at least this many seconds ago.
  case olderThan(seconds: Int)
  /// Not fresh any more by `expiresAt`.
  case expired
  /// Matches what all of these match; none of them is a conjunction itself.
  case every([ClearFilter])

  /// Whether the response itself matches the filter. `now` is in Unix seconds.
  public func matches(_ response: StoredResponse, now: Int) -> Bool {
    switch self {
    case .all: true
    case .url(let url, let key): response.url.hasSameBytes(as: url) || response.key.hasSameBytes(as: key)
    case .key(let key): response.key.hasSameBytes(as: key)
    case .prefix(let prefix): response.key.utf8.starts(with: prefix.utf8)
    case .host(let name, let port):
      Authority(of: response.url).map { $0.host == Authority.canonical(name) && (port == nil || $0.port == port) }
        ?? false
    case .olderThan(let seconds): response.storedAt <= now - seconds
    case .expired: response.expiresAt <= now
    case .every(let filters): filters.allSatisfy { $0.matches(response, now: now) }
    }
  }

  /// Whether a variant may not match although its original does.
  var dependsOnTime: Bool {
    switch self {
    case .olderThan, .expired: true
    case .every(let filters): filters.contains { $0.dependsOnTime }
    default: false
    }
  }

  /// The filter as an SQL condition that uses an index, with the values of its parameters.
  ///
  /// - Parameter first: the number of its first parameter.
  func condition(now: Int, firstParameter first: Int = 1) -> (sql: String, values: [any SQLiteValue]) {
    let (one, two, three) = ("?\(first)", "?\(first + 1)", "?\(first + 2)")
    return switch self {
    case .all: ("1", [])
    case .url(let url, let key):
      (
        "(url IS NOT NULL AND url_hash = \(one) AND url = \(two)) OR key IN (\(two), \(three))", [fnv1a(url), url, key]
      )
    case .key(let key): ("key = \(one)", [key])
    case .prefix(let prefix):
      if let end = Self.successor(of: prefix) {
        ("key >= \(one) AND key < \(two)", [prefix, end])
      } else {
        ("key >= \(one)", [prefix])
      }
    case .host(let name, let port):
      if let port {
        ("host = \(one) AND port = \(two)", [Authority.canonical(name), Int64(port)])
      } else {
        ("host = \(one)", [Authority.canonical(name)])
      }
    case .olderThan(let seconds): ("stored_at <= \(one)", [Int64(now) - Int64(seconds)])
    case .expired: ("expires_at <= \(one)", [Int64(now)])
    case .every(let filters): Self.conjunction(of: filters, now: now, firstParameter: first)
    }
  }

  private static func conjunction(
    of filters: [ClearFilter], now: Int, firstParameter: Int
  ) -> (sql: String, values: [any SQLiteValue]) {
    var conditions = ["1"]
    var values: [any SQLiteValue] = []
    for filter in filters {
      let next = filter.condition(now: now, firstParameter: firstParameter + values.count)
      conditions.append("(\(next.sql))")
      values += next.values
    }
    return (conditions.joined(separator: " AND "), values)
  }

  /// The filters of a conjunction; any other filter alone.
  var parts: [ClearFilter] { if case .every(let filters) = self { filters } else { [self] } }

  /// The first text after all texts with this prefix, in the order of UTF-8 bytes. Nil if there is none.
  static func successor(of prefix: String) -> String? {
    var scalars = Array(prefix.unicodeScalars)
    while let last = scalars.popLast() {
      let next = last.value == 0xD7FF ? 0xE000 : last.value + 1
      guard let scalar = Unicode.Scalar(next) else { continue }
      scalars.append(scalar)
      var result = String.UnicodeScalarView()
      result.append(contentsOf: scalars)
      return String(result)
    }
    return nil
  }
}

/// The host and port of a URL, for clearing by host.
struct Authority: Equatable {
  /// In ASCII and lower case; an IPv6 address is without brackets.
  var host: String
  var port: Int

  /// Nil for a URL that is not loaded by HTTP, such as `data:`.
  init?(of url: String) {
    guard let url = try? ResourceURL(url) else { return nil }
    (host, port) = (Self.canonical(url.host), url.port)
  }

  static func canonical(_ host: String) -> String {
    let host = host.lowercased()
    return host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
  }
}
