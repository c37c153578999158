public import HTTPTypes

/// The freshness of one stored response, boiled down to two comparisons: what a memory hit needs.
///
/// Made once, when the response is stored or validated, and good for as long as `CachePolicy.maxAge` stays as it is.
/// It answers for mode `default`, where `answers(requestHeaders:)`; everything else is for `CachePolicy.decide`.
public struct ReuseRule: Sendable, Hashable {
  /// The Unix second at which the response stops being fresh.
  public let freshUntil: Int
  private let knownFrom: Int
  private let varies: Bool

  public init(_ response: CachedResponse, policy: CachePolicy) {
    let freshness = Freshness(of: response, maxAge: policy.maxAge)
    freshUntil = freshness.freshUntil
    knownFrom = freshness.knownFrom
    varies = response.headers["vary"] != nil
  }

  /// Whether the response is fresh. A clock set back to before it was stored says no.
  @inlinable public func isFresh(at now: Int) -> Bool { now < freshUntil && isKnown(at: now) }

  @usableFromInline func isKnown(at now: Int) -> Bool { now >= knownFrom }

  /// Whether the rule is all there is to ask for a request with these headers: none of them means something to the
  /// cache, and the response is the same for all.
  public func answers(requestHeaders: HeaderFields) -> Bool {
    !varies && !requestHeaders.lines.contains { RequestDirectives.isRelevant($0.name) }
  }
}
