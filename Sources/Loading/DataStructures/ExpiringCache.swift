internal import Threads

/// What is remembered for a while. Bounded: beyond its capacity the oldest go.
struct ExpiringCache<Subject: Hashable, Value> {
  /// For how long; zero turns it off.
  var timeToLive: Duration
  let capacity: Int

  private var entries: [Subject: (value: Value, until: ContinuousClock.Instant)] = [:]
  /// In the order of their coming; entries replaced or removed since are skipped.
  private var order = FIFO<(subject: Subject, until: ContinuousClock.Instant)>()

  init(timeToLive: Duration, capacity: Int) {
    (self.timeToLive, self.capacity) = (timeToLive, capacity)
  }

  var count: Int { entries.count }

  /// How long the book of them is, entries that are to be skipped included.
  var orderCount: Int { order.count }

  mutating func remember(_ value: Value, of subject: Subject, now: ContinuousClock.Instant) {
    guard timeToLive > .zero else { return }
    let until = now.advanced(by: timeToLive)
    entries[subject] = (value, until)
    order.append((subject, until))
    forgetOld(now: now)
    if order.count > 2 * entries.count + 64 { order.removeAll { entries[$0.subject]?.until != $0.until } }
  }

  /// Lets go of those whose time is over, and of those beyond the capacity.
  mutating func forgetOld(now: ContinuousClock.Instant) {
    while let oldest = order.first, oldest.until <= now || entries.count > capacity {
      order.popFirst()
      if entries[oldest.subject]?.until == oldest.until { entries[oldest.subject] = nil }
    }
  }

  /// What is remembered of the subject, unless its time is over.
  func serveFromMemory(_ subject: Subject, now: ContinuousClock.Instant) -> Value? {
    guard timeToLive > .zero, !entries.isEmpty, let entry = entries[subject], entry.until > now else { return nil }
    return entry.value
  }

  mutating func forget(_ subject: Subject) { entries[subject] = nil }

  /// Returns how many there were.
  mutating func forgetAll() -> Int {
    defer { (entries, order) = ([:], FIFO()) }
    return entries.count
  }
}
