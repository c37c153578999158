/// URLs that failed for good a short while ago and are not asked again until their time is over.
///
/// Kept by key and credentials, since what one user may not see another may. Bounded: beyond `capacity` the oldest go.
struct FailureMemory {
  struct Subject: Hashable {
    let key: String
    let partition: String
  }

  struct Failure {
    let error: LoadError
    let url: String
    let host: String
    let maxBytes: Int64
    let until: ContinuousClock.Instant
  }

  static let capacity = 100_000

  /// How long a failure is remembered; zero turns it off.
  var timeToLive = Duration.seconds(60)

  private var failures: [Subject: Failure] = [:]
  /// In the order of their coming; entries replaced or removed since are skipped.
  private var order: ArraySlice<(subject: Subject, until: ContinuousClock.Instant)> = []

  var count: Int { failures.count }

  /// How long the book of them is, entries that are to be skipped included.
  var orderCount: Int { order.count }

  mutating func remember(
    _ error: LoadError, of subject: Subject, url: String, host: String, maxBytes: Int64, now: ContinuousClock.Instant
  ) {
    guard timeToLive > .zero else { return }
    let until = now.advanced(by: timeToLive)
    failures[subject] = Failure(error: error, url: url, host: host, maxBytes: maxBytes, until: until)
    order.append((subject, until))
    while let oldest = order.first, oldest.until <= now || failures.count > Self.capacity {
      order.removeFirst()
      if failures[oldest.subject]?.until == oldest.until { failures[oldest.subject] = nil }
    }
    if order.count > 2 * failures.count + 64 { order.removeAll { failures[$0.subject]?.until != $0.until } }
  }

  /// What is remembered, unless the load asks for what did not fail: any content, or a larger body.
  func failure(
    of subject: Subject, acceptsAnything: Bool, maxBytes: Int64, now: ContinuousClock.Instant
  ) -> Failure? {
    guard !failures.isEmpty, let failure = failures[subject], failure.until > now else { return nil }
    if failure.error.kind == .notAnImage && acceptsAnything { return nil }
    if failure.error.kind == .tooLarge && maxBytes > failure.maxBytes { return nil }
    return failure
  }

  mutating func forget(_ subject: Subject) { failures[subject] = nil }

  /// Forgets those that `matches` names. Returns how many.
  mutating func forget(where matches: (Subject, Failure) -> Bool) -> Int {
    let gone = failures.filter { matches($0.key, $0.value) }.map(\.key)
    gone.forEach { failures[$0] = nil }
    if failures.isEmpty { order = [] }
    return gone.count
  }
}
