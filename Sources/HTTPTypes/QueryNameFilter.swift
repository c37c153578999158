/// Names of query parameters that the cache key ignores; `*` matches any characters.
///
/// Names are compared percent-decoded and case-sensitively, so `sig*` matches `si%67nature`.
public struct QueryNameFilter: Sendable, Hashable {
  public static let none = QueryNameFilter([])

  private let patterns: [[UInt8]]

  public init(_ patterns: [String]) { self.patterns = patterns.map { Array($0.utf8) } }

  var isEmpty: Bool { patterns.isEmpty }

  func matches(_ name: [UInt8]) -> Bool { patterns.contains { Self.glob($0, matches: name) } }

  /// Removes the matching parameters from `query`, the text after the `?`. Nil if that removes all of them.
  func filtered(_ query: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    if isEmpty { return query }
    let parameters = query.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
    let kept = parameters.filter { parameter in
      !matches(PercentEncoding.decoded(parameter.prefix { $0 != UInt8(ascii: "=") }))
    }
    if kept.count == parameters.count { return query }
    return kept.isEmpty ? nil : ArraySlice(kept.joined(separator: CollectionOfOne(UInt8(ascii: "&"))))
  }

  /// Backtracks to the last `*` only, which suffices, so that the time is at most pattern times name.
  private static func glob(_ pattern: [UInt8], matches name: [UInt8]) -> Bool {
    var (p, n) = (0, 0)
    var resume: (pattern: Int, name: Int)?
    while n < name.count {
      if p < pattern.count, pattern[p] == UInt8(ascii: "*") {
        resume = (p + 1, n)
        p += 1
      } else if p < pattern.count, pattern[p] == name[n] {
        (p, n) = (p + 1, n + 1)
      } else if let last = resume {
        resume = (last.pattern, last.name + 1)
        (p, n) = (last.pattern, last.name + 1)
      } else {
        return false
      }
    }
    return pattern[p...].allSatisfy { $0 == UInt8(ascii: "*") }
  }
}
