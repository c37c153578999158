/// URLs that failed for good a short while ago and are not asked again until their time is over.
struct NegativeCache {
  struct Failure {
    let error: LoadError
    let maxBytes: Int64
    let until: ContinuousClock.Instant
  }

  static let capacity = 100_000

  private var failures = ExpiringCache<CacheIdentity, Failure>(timeToLive: .seconds(60), capacity: Self.capacity)

  /// How long a failure is remembered; zero turns it off.
  var timeToLive: Duration {
    get { failures.timeToLive }
    set { failures.timeToLive = newValue }
  }

  var count: Int { failures.count }
  var orderCount: Int { failures.orderCount }

  mutating func remember(
    _ error: LoadError, of image: CacheIdentity, maxBytes: Int64, now: ContinuousClock.Instant
  ) {
    let until = now.advanced(by: timeToLive)
    // The head of the answer is for the load that got it.
    var error = error
    error.response = nil
    failures.remember(Failure(error: error, maxBytes: maxBytes, until: until), of: image, now: now)
  }

  /// What is remembered, unless the load asks for what did not fail: any content, or a larger body.
  func failure(
    of image: CacheIdentity, acceptsAnything: Bool, maxBytes: Int64, now: ContinuousClock.Instant
  ) -> Failure? {
    guard let failure = failures.serveFromMemory(image, now: now) else { return nil }
    if failure.error.kind == .notAnImage && acceptsAnything { return nil }
    if failure.error.kind == .tooLarge && maxBytes > failure.maxBytes { return nil }
    return failure
  }

  mutating func forget(_ image: CacheIdentity) { failures.forget(image) }

  mutating func forgetOld(now: ContinuousClock.Instant) { failures.forgetOld(now: now) }

  /// Returns how many there were.
  mutating func forgetAll() -> Int { failures.forgetAll() }
}
