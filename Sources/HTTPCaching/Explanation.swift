extension CachePolicy {
  /// Explains why a stored response is fresh or stale, for `query`. The text has numbers and names of fields only, so
  /// it reveals no secrets.
  public func explain(_ response: CachedResponse, now: Int) -> String {
    let freshness = Freshness(of: response, maxAge: maxAge)
    let age = freshness.age(at: now)
    guard freshness.isWithinLimit(at: now) else {
      return now < response.responseTime
        ? "stale: stored in the future of this clock"
        : "stale: stored or last validated more than max-age (\(maxAge) s) ago"
    }
    if freshness.control.noCache { return "stale: Cache-Control: no-cache requires validation each time" }
    let lifetime = freshness.lifetime
    let source =
      switch freshness.basis {
      case .maxAge: "Cache-Control: max-age=\(lifetime)"
      case .expires: "Expires, \(lifetime) s after Date"
      case .invalidExpires: "Expires is invalid, which counts as past"
      case .heuristic: "a tenth of the time between Last-Modified and Date, \(lifetime) s"
      case .none: "no Cache-Control: max-age, Expires or Last-Modified"
      }
    let state = freshness.isFresh(at: now) ? "fresh" : "stale"
    return "\(state): \(source); age \(age) s\(grace(freshness, now: now))"
  }

  private func grace(_ freshness: Freshness, now: Int) -> String {
    guard !freshness.isFresh(at: now) else { return freshness.control.immutable ? "; immutable" : "" }
    if freshness.control.mustRevalidate { return "; must-revalidate" }
    let control = freshness.control
    var grants: [String] = []
    if freshness.mayBeStale(by: control.staleWhileRevalidate, at: now) { grants.append("stale-while-revalidate") }
    if freshness.mayBeStale(by: control.staleIfError, at: now) { grants.append("stale-if-error") }
    return grants.isEmpty ? "" : "; within \(grants.joined(separator: " and "))"
  }
}
