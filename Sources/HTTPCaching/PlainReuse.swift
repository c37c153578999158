public import HTTPTypes

/// What most hits come to, in a few comparisons: a fresh response for a request that asks nothing special of the cache.
///
/// It holds in the modes `default`, `force-cache` and `only-if-cached`, which all serve what is fresh. Where it says
/// no, nothing is said: that is for `decide`.
extension CachePolicy {
  /// Whether a request with these header fields, their names in lower case, asks nothing of the cache.
  public static func isPlain(_ requestHeaders: HeaderFields) -> Bool {
    !requestHeaders.lines.contains { RequestDirectives.isRelevant($0.name) }
  }

  /// Whether a stored response is fresh and the same for every request.
  ///
  /// - Parameter freshUntil: what `freshUntil` said when the response came, perhaps to another worker with another
  ///   `maxAge`: the one in force limits it.
  public func isPlainlyFresh(
    freshUntil: Int, headers: HeaderFields, responseTime: Int, now: Int
  ) -> Bool {
    Freshness.isWithin(maxAge, since: responseTime, at: now) && now < freshUntil
      && !headers.lines.contains { $0.name == "vary" }
  }
}
