internal import Platform
internal import Synchronization

/// Recent deliveries by all workers, which keep the files until the index records the deliveries.
///
/// A hash table of one word for each id; ids may share a word. The word is the Unix second of the latest delivery, or
/// `removing` while a file of the word is being deleted. A worker that delivers a file writes the word before it checks
/// that the file exists; a worker that deletes a file sets the word to `removing` first. So no path is delivered whose
/// file is deleted right after. Ids that share a word only keep each other's files for some seconds longer.
extension PeerTable {
  /// How long a delivery may be missing from the index, in seconds: until it is flushed and committed.
  private static let timeToLive = MaintenanceSchedule.flushInterval + 2
  private static let removing = UInt64.max

  /// Records a delivery. Must be called before the file is checked, also without peers: another worker may start before
  /// the index records the delivery.
  func recordDelivery(of id: Int64, at time: Int) {
    guard time > 0 else { return }
    let (index, new) = (Layout.delivery(id), UInt64(time))
    while true {
      let old = awaitRemoval(at: index)
      if old != Self.removing, old >= new { return }
      if words[index].compareExchange(expected: old, desired: new, ordering: .sequentiallyConsistent).exchanged {
        return
      }
    }
  }

  /// Waits until no file of the word is being deleted and returns the word, or returns `removing` if that takes too
  /// long because a worker was killed meanwhile. Normally waits for one call of `unlink`.
  private func awaitRemoval(at index: Int) -> UInt64 {
    for _ in 0..<1000 {
      let word = words[index].load(ordering: .sequentiallyConsistent)
      if word != Self.removing { return word }
      sched_yield()
    }
    return Self.removing
  }

  /// The time of a delivery that may not be in the index yet, in Unix seconds.
  func recentDelivery(of id: Int64, now: Int) -> Int? {
    let word = words[Layout.delivery(id)].load(ordering: .sequentiallyConsistent)
    guard word != Self.removing, let time = Int(exactly: word), time > now - Self.timeToLive,
      time <= now + Self.timeToLive
    else {
      return nil
    }
    return time
  }

  /// Runs `remove` unless the file was delivered recently. A worker that is about to deliver it waits until `remove`
  /// returns.
  func unlessDelivered(_ id: Int64, now: Int, _ remove: () -> Void) -> Bool {
    guard hasPeers else {
      remove()
      return true
    }
    let index = Layout.delivery(id)
    let old = awaitRemoval(at: index)
    guard recentDelivery(of: id, now: now) == nil,
      words[index].compareExchange(expected: old, desired: Self.removing, ordering: .sequentiallyConsistent).exchanged
    else { return false }
    remove()
    let restored = old == Self.removing ? 0 : old
    _ = words[index].compareExchange(expected: Self.removing, desired: restored, ordering: .sequentiallyConsistent)
    return true
  }
}
