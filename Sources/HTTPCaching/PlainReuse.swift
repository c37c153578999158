public import HTTPTypes

/// A fast path for most hits: a fresh response for a request without cache directives, decided by a few comparisons.
///
/// It applies in the modes `default`, `force-cache` and `only-if-cached`, all of which serve a fresh response. False
/// decides nothing: `decide` must be asked then.
extension CachePolicy {
  /// Whether a request with these header fields (names in lower case) has no directive for the cache.
  public static func isPlain(_ requestHeaders: HeaderFields) -> Bool {
    !requestHeaders.lines.contains { RequestDirectives.isRelevant($0.name) }
  }

  /// Whether a stored response is fresh, and the same for every request.
  ///
  /// - Parameter freshUntil: the value of `freshUntil` when the response arrived, perhaps in another worker with
  ///   another `maxAge`. The current `maxAge` limits it.
  public func isPlainlyFresh(
    freshUntil: Int, headers: HeaderFields, responseTime: Int, now: Int
  ) -> Bool {
    Freshness.isWithin(maxAge, since: responseTime, at: now) && now < freshUntil
      && !headers.lines.contains { $0.name == "vary" }
  }
}
