internal import HTTPTypes

/// How long a stored response may be reused without asking (RFC 9111 section 4.2), worked out once.
struct Freshness {
  /// Where the lifetime comes from.
  enum Basis: Equatable {
    case maxAge, expires, invalidExpires, heuristic, none
  }

  let control: CacheControl
  let basis: Basis
  /// Seconds; 0 where nothing grants one.
  let lifetime: Int
  /// `corrected_initial_age`, in seconds.
  let initialAge: Int
  private let responseTime: Int
  private let maxAge: Int

  /// A clock that was set back by more seconds than this leaves no idea of how old a response is.
  static let clockTolerance = 60

  init(of response: CachedResponse, maxAge: Int) {
    let headers = response.headers
    responseTime = Self.bounded(response.responseTime)
    self.maxAge = min(max(maxAge, 0), CacheControl.longest)
    control = CacheControl(headers.lines.lazy.filter { $0.name == "cache-control" }.map(\.value))
    let date = Self.date("date", of: headers, receivedAt: responseTime) ?? responseTime
    let apparentAge = max(0, responseTime - date)
    let delay = max(0, responseTime - Self.bounded(response.requestTime))
    initialAge = max(apparentAge, Self.age(of: headers) + min(delay, CacheControl.longest))

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

  /// How many seconds it has been stale for; negative while it is fresh.
  func staleness(at now: Int) -> Int { age(at: now) - lifetime }

  func isFresh(at now: Int) -> Bool { !control.noCache && isWithinLimit(at: now) && staleness(at: now) < 0 }

  /// Whether it was stored or validated within `maxAge`, beyond which it is served in no mode. Also false where the
  /// clock says that this is still to come.
  func isWithinLimit(at now: Int) -> Bool { Self.isWithin(maxAge, since: responseTime, at: now) }

  static func isWithin(_ maxAge: Int, since responseTime: Int, at now: Int) -> Bool {
    let resident = bounded(now) - bounded(responseTime)
    return max(resident, 0) < maxAge && resident >= -clockTolerance
  }

  /// Whether it may be served `seconds` after it became stale (sections 4.2.4 and 5.2.2.2).
  func mayBeStale(by seconds: Int?, at now: Int) -> Bool {
    // Of a second that has begun, some has passed: not for 0 s is not at all.
    guard let seconds, seconds > 0, !control.noCache, !control.mustRevalidate else { return false }
    return isWithinLimit(at: now) && staleness(at: now) <= seconds
  }

  /// The first second at which it is not fresh; `Int.min` where it never is.
  var freshUntil: Int {
    let remaining = min(lifetime - initialAge, maxAge)
    return control.noCache || remaining <= 0 ? .min : responseTime + remaining
  }

  /// The first member of the first line, where it is a number (section 5.1).
  private static func age(of headers: HeaderFields) -> Int {
    guard let line = headers.lines.first(where: { $0.name == "age" })?.value else { return 0 }
    let member = line.prefix { $0 != "," }
    return CacheControl.seconds(member.prefix { $0 != " " && $0 != "\t" }) ?? 0
  }

  private static func date(_ name: String, of headers: HeaderFields, receivedAt now: Int) -> Int? {
    headers.lines.first { $0.name == name }.flatMap { HTTPDate.parse($0.value, now: now) }
  }

  /// Whether a lifetime may be guessed (section 4.2.2; the codes of RFC 9110 section 15.1 that are ever stored).
  private static func mayGuess(status: Int, _ control: CacheControl) -> Bool {
    Storing.isHeuristicallyCacheable(status) || control.isPublic
  }

  /// Times beyond 35,000 years from now are no times, and their sums must not trap.
  private static func bounded(_ time: Int) -> Int { min(max(time, -(1 << 40)), 1 << 40) }
}
