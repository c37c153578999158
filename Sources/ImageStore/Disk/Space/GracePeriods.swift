/// When what was delivered last, for as long as that keeps it from being removed.
struct GracePeriods<Subject: Hashable> {
  private var last: [Subject: Int] = [:]
  /// Each of `last`, with a time not after its last delivery.
  private var order: ArraySlice<(subject: Subject, at: Int)> = []

  var isEmpty: Bool { last.isEmpty }

  /// When `takeExpired` may have something next; nil while there is nothing.
  var nextEnd: Int? { order.first.map { endOfLife(deliveredAt: $0.at) } }

  /// In Unix seconds.
  subscript(subject: Subject) -> Int? { last[subject] }

  mutating func note(_ subject: Subject, at time: Int) {
    if let earlier = last[subject] {
      last[subject] = max(earlier, time)
    } else {
      last[subject] = time
      order.append((subject, time))
    }
  }

  mutating func remove(_ subject: Subject) { last[subject] = nil }

  /// Lets go of those that were delivered over 60 s ago. Amortised O(1) for each that was noted.
  ///
  /// - Parameter isHeld: whether it stays, as if it were delivered now.
  mutating func takeExpired(now: Int, sparing isHeld: (Subject) -> Bool = { _ in false }) -> [Subject] {
    var expired: [Subject] = []
    while let first = order.first, endOfLife(deliveredAt: first.at) <= now {
      order.removeFirst()
      guard var time = last[first.subject] else { continue }
      if isHeld(first.subject) { time = now }
      if endOfLife(deliveredAt: time) <= now {
        last[first.subject] = nil
        expired.append(first.subject)
      } else {
        order.append((first.subject, time))
      }
    }
    return expired
  }
}
