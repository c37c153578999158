public import HTTPTypes

/// The time for which a stored response may be reused without validation (RFC 9111 section 4.2), computed once.
struct Freshness {
  /// The source of the lifetime.
  enum Basis: Equatable {
    case maxAge, expires, invalidExpires, heuristic, none
  }

  let control: CacheControl
  let basis: Basis
  /// Seconds; 0 if no rule grants any.
  let lifetime: Int
  /// `corrected_initial_age`, in seconds.
  let initialAge: Int
  private let responseTime: Int
  private let maxAge: Int

  /// If the clock was set back by more seconds than this, the age of a response is unknown.
  static let clockTolerance = 60

  init(of response: CachedResponse, maxAge: Int) {
    let headers = response.headers
    responseTime = Self.bounded(response.responseTime)
    self.maxAge = min(max(maxAge, 0), CacheControl.maxSeconds)
    control = CacheControl(headers.lines.lazy.filter { $0.name == "cache-control" }.map(\.value))
    let date = Self.date("date", of: headers, receivedAt: responseTime) ?? responseTime
    let apparentAge = max(0, responseTime - date)
    let delay = max(0, responseTime - Self.bounded(response.requestTime))
    initialAge = max(apparentAge, Self.age(of: headers) + min(delay, CacheControl.maxSeconds))

    if let seconds = control.maxAge {
      (basis, lifetime) = (.maxAge, seconds)
    } else if let expires = headers.lines.first(where: { $0.name == "expires" })?.value {
      let moment = HTTPDate.parse(expires, now: responseTime)
      basis = moment == nil ? .invalidExpires : .expires
      lifetime = max(0, (moment ?? date) - date)
    } else if Self.mayGuess(status: response.status, control),
      let modified = Self.date("last-modified", of: headers, receivedAt: responseTime), modified < date
    {
      (basis, lifetime) = (.heuristic, (date - modified) / 10)
    } else {
      (basis, lifetime) = (.none, 0)
    }
  }

  /// `current_age`, in seconds.
  func age(at now: Int) -> Int { initialAge + max(0, Self.bounded(now) - responseTime) }

  /// Seconds since the response became stale; negative while it is fresh.
  func staleness(at now: Int) -> Int { age(at: now) - lifetime }

  func isFresh(at now: Int) -> Bool { !control.noCache && isWithinLimit(at: now) && staleness(at: now) < 0 }

  /// Whether the response was stored or validated within `maxAge`; otherwise no mode may serve it. Also false if the
  /// clock says that this is in the future.
  func isWithinLimit(at now: Int) -> Bool { Self.isWithin(maxAge, since: responseTime, at: now) }

  static func isWithin(_ maxAge: Int, since responseTime: Int, at now: Int) -> Bool {
    let resident = bounded(now) - bounded(responseTime)
    return max(resident, 0) < maxAge && resident >= -clockTolerance
  }

  /// Whether the response may be served `seconds` after it became stale (sections 4.2.4 and 5.2.2.2).
  func mayBeStale(by seconds: Int?, at now: Int) -> Bool {
    // Part of a second that has begun has passed, so 0 s allows nothing.
    guard let seconds, seconds > 0, !control.noCache, !control.mustRevalidate else { return false }
    return isWithinLimit(at: now) && staleness(at: now) <= seconds
  }

  /// The first second at which the response is not fresh; `Int.min` if it never is fresh.
  var freshUntil: Int {
    let remaining = min(lifetime - initialAge, maxAge)
    return control.noCache || remaining <= 0 ? .min : responseTime + remaining
  }

  /// The first member of the first line, if it is a number (section 5.1).
  private static func age(of headers: HeaderFields) -> Int {
    guard let line = headers.lines.first(where: { $0.name == "age" })?.value else { return 0 }
    let member = line.prefix { $0 != "," }
    return CacheControl.seconds(member.prefix { $0 != " " && $0 != "\t" }) ?? 0
  }

  private static func date(_ name: String, of headers: HeaderFields, receivedAt now: Int) -> Int? {
    headers.lines.first { $0.name == name }.flatMap { HTTPDate.parse($0.value, now: now) }
  }

  /// Whether a heuristic lifetime is allowed (section 4.2.2; the status codes of RFC 9110 section 15.1 that are ever
  /// stored).
  private static func mayGuess(status: Int, _ control: CacheControl) -> Bool {
    Storing.isHeuristicallyCacheable(status) || control.isPublic
  }

  /// Limits times to 35,000 years from now, so that their sums cannot trap.
  private static func bounded(_ time: Int) -> Int { min(max(time, -(1 << 40)), 1 << 40) }
}

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
