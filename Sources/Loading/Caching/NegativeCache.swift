internal import Platform

/// The negative cache: permanent failures, remembered for a limited time in which the same request is not sent again.
struct NegativeCache {
  struct Failure {
    let error: LoadError
    let maxBytes: Int64
    let until: Instant
  }

  static let capacity = 100_000

  private var failures = ExpiringCache<RequestIdentity, Failure>(timeToLive: .seconds(60), capacity: Self.capacity)

  /// How long a failure is remembered; zero disables the cache.
  var timeToLive: Duration {
    get { failures.timeToLive }
    set { failures.timeToLive = newValue }
  }

  var count: Int { failures.count }
  var orderCount: Int { failures.orderCount }

  mutating func remember(_ error: LoadError, of request: RequestIdentity, maxBytes: Int64, now: Instant) {
    let until = now.advanced(by: timeToLive)
    // Only the load that got the response may see its head.
    var error = error
    error.response = nil
    failures.remember(Failure(error: error, maxBytes: maxBytes, until: until), of: request, now: now)
  }

  /// The remembered failure, unless the load accepts what failed: content that is not an image, or a larger body.
  func failure(
    of request: @autoclosure () -> RequestIdentity, acceptsAnything: Bool, maxBytes: Int64, now: Instant
  ) -> Failure? {
    guard count > 0, let failure = failures.value(of: request(), now: now) else { return nil }
    if failure.error.kind == .notAnImage && acceptsAnything { return nil }
    if failure.error.kind == .tooLarge && maxBytes > failure.maxBytes { return nil }
    return failure
  }

  mutating func forget(_ request: @autoclosure () -> RequestIdentity) { if count > 0 { failures.forget(request()) } }

  mutating func forgetOld(now: Instant) { failures.forgetOld(now: now) }

  /// Removes all failures and returns their number.
  mutating func forgetAll() -> Int { failures.forgetAll() }
}
