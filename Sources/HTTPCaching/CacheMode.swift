internal import HTTPTypes

/// How a load uses the cache: the cache modes of the Fetch standard, and `refresh`.
public enum CacheMode: String, Sendable, CaseIterable {
  /// What is fresh is served, what is stale is revalidated first.
  case `default` = "default"
  /// The cache is neither looked in nor written.
  case noStore = "no-store"
  /// The cache is not looked in, but written.
  case reload
  /// What is cached is revalidated, fresh or not.
  case noCache = "no-cache"
  /// What is cached is served, fresh or not.
  case forceCache = "force-cache"
  /// As `forceCache`, and nothing is ever sent.
  case onlyIfCached = "only-if-cached"
  /// What is cached is shown at once, fresh or not, and then revalidated.
  case refresh

  /// What the Fetch standard adds to a request in this mode, less what the host set itself.
  func requestFields(besides host: HeaderFields) -> HeaderFields {
    var fields: HeaderFields = [:]
    switch self {
    case .default, .forceCache, .onlyIfCached: break
    case .noCache, .refresh:
      if host["cache-control"] == nil { fields.append("cache-control", "max-age=0") }
    case .noStore, .reload:
      if host["pragma"] == nil { fields.append("pragma", "no-cache") }
      if host["cache-control"] == nil { fields.append("cache-control", "no-cache") }
    }
    return fields
  }
}
