public import HTTPTypes

/// The decision about a request. `headers` are fields to send in addition to the host's own.
public enum CacheDecision: Sendable, Hashable {
  /// Answer with the stored response; send nothing.
  case serve(index: Int, isFresh: Bool)
  /// Answer with the stored response, and revalidate it for later loads meanwhile (stale-while-revalidate).
  case serveThenRevalidate(index: Int, headers: HeaderFields)
  /// Show the stored response at once; the answer is the result of its revalidation (mode `refresh`).
  case showThenRevalidate(index: Int, isFresh: Bool, headers: HeaderFields)
  /// Send the request with the validators of the stored response.
  case revalidate(index: Int, headers: HeaderFields)
  /// Send the request without validators.
  case fetch(headers: HeaderFields)
  /// Fail: nothing may be sent, and there is nothing to serve.
  case notCached
}

/// The rules of a private cache for GET (RFC 9111), with one addition: in every mode, a response that was stored or
/// last validated `maxAge` seconds ago is revalidated before it is served.
public struct CachePolicy: Sendable, Hashable {
  /// Seconds.
  public var maxAge: Int

  public init(maxAge: Int) { self.maxAge = maxAge }

  /// Decides about a request with `requestHeaders` (all fields that will be sent and that a Vary may name), given the
  /// responses stored for its key. `now` is in Unix seconds.
  public func decide(mode: CacheMode, requestHeaders: HeaderFields, stored: [CachedResponse], now: Int)
    -> CacheDecision
  {
    let request = RequestDirectives(requestHeaders)
    let requestedMode = mode
    let mode = request.effectiveMode(requestedMode)
    // If the host validates itself, the fields are those of the mode it asked for, except in the default mode.
    let added = (requestedMode == .default ? mode : requestedMode).requestFields(besides: requestHeaders)
    let mayNotSend = requestedMode == .onlyIfCached || requestedMode == .default && request.control.onlyIfCached
    if request.hasRange { return mayNotSend ? .notCached : .fetch(headers: added) }
    guard mode != .noStore, mode != .reload, let index = Vary.newest(of: stored, for: requestHeaders) else {
      return mayNotSend ? .notCached : .fetch(headers: added)
    }
    let response = stored[index]
    let freshness = Freshness(of: response, maxAge: maxAge)
    let isFresh = freshness.isFresh(at: now)
    let validators = request.isConditional ? [:] : Validation.requestFields(for: response.headers)
    let toSend = HeaderFields(added.lines + validators.lines)
    let revalidate: CacheDecision =
      validators.isEmpty ? .fetch(headers: added) : .revalidate(index: index, headers: toSend)

    switch mode {
    case .forceCache, .onlyIfCached:
      if freshness.isWithinLimit(at: now) { return .serve(index: index, isFresh: isFresh) }
    case .refresh:
      // RFC 8246: a fresh, immutable response need not be validated.
      if isFresh, freshness.control.immutable { return .serve(index: index, isFresh: true) }
      if freshness.isWithinLimit(at: now) {
        return .showThenRevalidate(index: index, isFresh: isFresh, headers: toSend)
      }
    case .default:
      if let served = freshness.answer(to: request.control, index: index, now: now) { return served }
      if !mayNotSend, request.control == CacheControl(),
        freshness.mayBeStale(by: freshness.control.staleWhileRevalidate, at: now)
      {
        return .serveThenRevalidate(index: index, headers: toSend)
      }
    case .noCache, .noStore, .reload: break
    }
    return mayNotSend ? .notCached : revalidate
  }

  /// Whether a stale response may be the answer because the server failed (RFC 5861 section 4). `failure` is the status
  /// of the server's answer, nil if there was none.
  public func mayServeOnError(
    _ response: CachedResponse, mode: CacheMode, requestHeaders: HeaderFields, failure: Int?, now: Int
  ) -> Bool {
    if let failure, ![500, 502, 503, 504].contains(failure) { return false }
    let request = RequestDirectives(requestHeaders)
    guard request.effectiveMode(mode) == .default, !request.hasRange, !request.control.noCache else { return false }
    let freshness = Freshness(of: response, maxAge: maxAge)
    let window = max(freshness.control.staleIfError ?? 0, request.control.staleIfError ?? 0)
    return Vary.matches(response, requestHeaders) && freshness.mayBeStale(by: window, at: now)
  }

  public func isFresh(_ response: CachedResponse, at now: Int) -> Bool {
    Freshness(of: response, maxAge: maxAge).isFresh(at: now)
  }

  /// The Unix second at which the response stops being fresh; `Int.min` if it must always be validated.
  public func freshUntil(_ response: CachedResponse) -> Int { Freshness(of: response, maxAge: maxAge).freshUntil }
}

extension Freshness {
  /// Whether the response answers a request in the default mode, by the directives of RFC 9111 section 5.2.1.
  fileprivate func answer(to request: CacheControl, index: Int, now: Int) -> CacheDecision? {
    guard !request.noCache else { return nil }
    if let maxAge = request.maxAge, age(at: now) > maxAge || maxAge == 0 { return nil }
    if isFresh(at: now) {
      return -staleness(at: now) >= request.minFresh ?? 0 ? .serve(index: index, isFresh: true) : nil
    }
    guard request.minFresh == nil, mayBeStale(by: request.maxStale, at: now) else { return nil }
    return .serve(index: index, isFresh: false)
  }
}

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

/// A stored response as the caching rules see it. Times are Unix seconds.
public struct CachedResponse: Sendable, Hashable {
  public var status: Int
  /// As returned by `Storing.fields` and updated by later 304s.
  public var headers: HeaderFields
  /// The fields of the request that the response's Vary names (`Vary.selectingFields`).
  public var selectingFields: HeaderFields
  /// Time at which the request was sent that fetched or last validated the response.
  public var requestTime: Int
  /// Time at which its answer arrived, from which `CachePolicy.maxAge` counts.
  public var responseTime: Int

  public init(
    status: Int = 200, headers: HeaderFields, selectingFields: HeaderFields = [:], requestTime: Int, responseTime: Int
  ) {
    self.status = status
    self.headers = headers
    self.selectingFields = selectingFields
    self.requestTime = requestTime
    self.responseTime = responseTime
  }
}
