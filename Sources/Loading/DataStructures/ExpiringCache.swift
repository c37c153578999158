internal import Platform
internal import Threads

/// A cache whose entries expire. Bounded: beyond its capacity the oldest entries are removed.
struct ExpiringCache<Subject: Hashable, Value> {
  /// The lifetime of new entries; zero disables the cache.
  var timeToLive: Duration
  let capacity: Int

  private var entries: [Subject: (value: Value, until: Instant)] = [:]
  /// The entries in the order of insertion; those replaced or removed since are skipped.
  private var order = FIFO<(subject: Subject, until: Instant)>()

  init(timeToLive: Duration, capacity: Int) {
    (self.timeToLive, self.capacity) = (timeToLive, capacity)
  }

  var count: Int { entries.count }

  /// The length of `order`, including entries to be skipped.
  var orderCount: Int { order.count }

  mutating func remember(_ value: Value, of subject: Subject, now: Instant) {
    guard timeToLive > .zero else { return }
    let until = now.advanced(by: timeToLive)
    entries[subject] = (value, until)
    order.append((subject, until))
    forgetOld(now: now)
    if order.count > 2 * entries.count + 64 { order.removeAll { entries[$0.subject]?.until != $0.until } }
  }

  /// Removes expired entries and those beyond the capacity.
  mutating func forgetOld(now: Instant) {
    while let oldest = order.first, oldest.until <= now || entries.count > capacity {
      order.popFirst()
      if entries[oldest.subject]?.until == oldest.until { entries[oldest.subject] = nil }
    }
  }

  /// The value of a subject, unless it has expired.
  func value(of subject: Subject, now: Instant) -> Value? {
    guard timeToLive > .zero, !entries.isEmpty, let entry = entries[subject], entry.until > now else { return nil }
    return entry.value
  }

  mutating func forget(_ subject: Subject) { entries[subject] = nil }

  /// Removes all entries and returns their number.
  mutating func forgetAll() -> Int {
    defer { (entries, order) = ([:], FIFO()) }
    return entries.count
  }
}
