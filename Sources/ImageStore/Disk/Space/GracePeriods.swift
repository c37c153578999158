/// How long a delivered path remains valid, regardless of eviction, replacement and clearing, in seconds.
public let deliveredFileLifetime = 60

/// The Unix second from which a file delivered at `time` may be deleted. Both times are rounded down to seconds, hence
/// one more.
func endOfLife(deliveredAt time: Int) -> Int { time + deliveredFileLifetime + 1 }

/// The time of the last delivery of each subject, for as long as it protects the subject from deletion.
struct GracePeriods<Subject: Hashable> {
  private var last: [Subject: Int] = [:]
  /// Each key of `last`, with a time that is not after its last delivery.
  private var order: ArraySlice<(subject: Subject, at: Int)> = []

  var isEmpty: Bool { last.isEmpty }

  /// When `removeExpired` may next return a subject; nil if there is none.
  var nextEnd: Int? { order.first.map { endOfLife(deliveredAt: $0.at) } }

  /// In Unix seconds.
  subscript(subject: Subject) -> Int? { last[subject] }

  mutating func record(_ subject: Subject, at time: Int) {
    if let earlier = last[subject] {
      last[subject] = max(earlier, time)
    } else {
      last[subject] = time
      order.append((subject, time))
    }
  }

  mutating func remove(_ subject: Subject) { last[subject] = nil }

  /// Removes and returns the subjects that were delivered over 60 s ago. Amortised O(1) for each recorded delivery.
  ///
  /// - Parameter isInUse: whether a subject is in use; it stays as if it were delivered now.
  mutating func removeExpired(now: Int, sparing isInUse: (Subject) -> Bool = { _ in false }) -> [Subject] {
    var expired: [Subject] = []
    while let first = order.first, endOfLife(deliveredAt: first.at) <= now {
      order.removeFirst()
      guard var time = last[first.subject] else { continue }
      if isInUse(first.subject) { time = now }
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
