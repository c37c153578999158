internal import Synchronization

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// What the workers of a directory have handed out a moment ago: its file stays, though the index does not know yet
/// why.
///
/// A word for each id, which many share: the Unix second of the latest delivery, or `removing` while a file that falls
/// on it is being removed. Who hands out writes before it looks whether the file is there; who removes makes the word
/// its own before it does. So no path is handed out whose file goes right after. Ids that share a word keep each
/// other's files for some seconds longer, and that is all.
extension PeerTable {
  /// For how long a delivery may be unknown to the index, in seconds: until it is flushed and committed.
  private static let memory = MaintenanceSchedule.flushInterval + 2
  private static let removing = UInt64.max

  /// Notes that a file is being handed out. To be called before it is looked whether it is there, without company as
  /// well: another worker may come before the index tells.
  func noteDelivery(of id: Int64, at time: Int) {
    guard time > 0 else { return }
    let (place, new) = (Layout.delivery(id), UInt64(time))
    while true {
      let old = awaitRemoval(at: place)
      if old != Self.removing, old >= new { return }
      if words[place].compareExchange(expected: old, desired: new, ordering: .sequentiallyConsistent).exchanged {
        return
      }
    }
  }

  /// What stands there once no file is being removed any more, or `removing`, where a worker was killed in between:
  /// else it takes as long as a call of `unlink`.
  private func awaitRemoval(at place: Int) -> UInt64 {
    for _ in 0..<1000 {
      let word = words[place].load(ordering: .sequentiallyConsistent)
      if word != Self.removing { return word }
      sched_yield()
    }
    return Self.removing
  }

  /// When the file was handed out by a worker that may not have told the index yet. Unix seconds.
  func recentDelivery(of id: Int64, now: Int) -> Int? {
    let word = words[Layout.delivery(id)].load(ordering: .sequentiallyConsistent)
    guard word != Self.removing, let time = Int(exactly: word), time > now - Self.memory, time <= now + Self.memory
    else {
      return nil
    }
    return time
  }

  /// Runs `remove` unless the file has been handed out a moment ago; who is about to do so waits for it.
  func unlessDelivered(_ id: Int64, now: Int, _ remove: () -> Void) -> Bool {
    guard hasPeers else {
      remove()
      return true
    }
    let place = Layout.delivery(id)
    let old = awaitRemoval(at: place)
    guard recentDelivery(of: id, now: now) == nil,
      words[place].compareExchange(expected: old, desired: Self.removing, ordering: .sequentiallyConsistent).exchanged
    else { return false }
    remove()
    let left = old == Self.removing ? 0 : old
    _ = words[place].compareExchange(expected: Self.removing, desired: left, ordering: .sequentiallyConsistent)
    return true
  }
}
