internal import Text

/// URLs that failed for good a short while ago and are not asked again until their time is over.
///
/// Kept by key and credentials, since what one user may not see another may.
struct FailureMemory {
  struct Subject: Hashable {
    let key: ExactString
    let partition: String

    init(key: String, partition: String) {
      self.key = ExactString(key)
      self.partition = partition
    }
  }

  struct Failure {
    let error: LoadError
    let maxBytes: Int64
    let until: ContinuousClock.Instant
  }

  static let capacity = 100_000

  private var failures = FadingMemory<Subject, Failure>(timeToLive: .seconds(60), capacity: Self.capacity)

  /// How long a failure is remembered; zero turns it off.
  var timeToLive: Duration {
    get { failures.timeToLive }
    set { failures.timeToLive = newValue }
  }

  var count: Int { failures.count }
  var orderCount: Int { failures.orderCount }

  mutating func remember(
    _ error: LoadError, of subject: Subject, maxBytes: Int64, now: ContinuousClock.Instant
  ) {
    let until = now.advanced(by: timeToLive)
    failures.remember(Failure(error: error, maxBytes: maxBytes, until: until), of: subject, now: now)
  }

  /// What is remembered, unless the load asks for what did not fail: any content, or a larger body.
  func failure(
    of subject: Subject, acceptsAnything: Bool, maxBytes: Int64, now: ContinuousClock.Instant
  ) -> Failure? {
    guard let failure = failures.recall(subject, now: now) else { return nil }
    if failure.error.kind == .notAnImage && acceptsAnything { return nil }
    if failure.error.kind == .tooLarge && maxBytes > failure.maxBytes { return nil }
    return failure
  }

  mutating func forget(_ subject: Subject) { failures.forget(subject) }

  /// Returns how many there were.
  mutating func forgetAll() -> Int { failures.forgetAll() }
}
