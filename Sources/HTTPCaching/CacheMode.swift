internal import HTTPTypes

/// The use of the cache by a load: the cache modes of the Fetch standard, and `refresh`.
public enum CacheMode: String, Sendable, CaseIterable {
  /// Serves a fresh response; revalidates a stale one before serving it.
  case `default` = "default"
  /// Neither reads nor writes the cache.
  case noStore = "no-store"
  /// Does not read the cache, but writes it.
  case reload
  /// Revalidates a cached response, fresh or not.
  case noCache = "no-cache"
  /// Serves a cached response, fresh or not.
  case forceCache = "force-cache"
  /// Like `forceCache`, but never sends a request.
  case onlyIfCached = "only-if-cached"
  /// Shows a cached response at once, fresh or not, and then revalidates it.
  case refresh

  /// The fields that the Fetch standard adds to a request in this mode, except those that the host has set.
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
