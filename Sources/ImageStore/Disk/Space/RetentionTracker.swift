/// Decides whether a file may be deleted, and if not, from when on. Pure: times are Unix seconds and passed in.
///
/// A path that was delivered to a host stays valid for `deliveredFileLifetime` after its last delivery, regardless of
/// eviction, replacement and clearing. A delivery is known here when this thread has recorded it. Those by other
/// threads come from the `DeliveryTable`, which the tier drains before it decides. Those by peers come from the
/// `PeerTable` at once, and from the index (`FileRecord.deliveredAt`) when the peer has flushed them.
/// `DeliveryTable.unlessDelivered` covers a delivery at the very moment of the deletion.
struct RetentionTracker {
  struct Use: Equatable {
    var at: Int
    var times = 1
    /// Whether the path was delivered to a host, which relies on the file.
    var isDelivery = true

    mutating func add(_ other: Use) {
      at = max(at, other.at)
      times += other.times
      isDelivery = isDelivery || other.isDelivery
    }
  }

  /// Uses that the index does not contain yet.
  struct Unwritten {
    var uses: [Int64: Use] = [:]
    /// Responses whose digest matched, but which the index does not mark as verified: not yet, or never if the tier is
    /// read-only.
    var verified: Set<Int64> = []

    var isEmpty: Bool { uses.isEmpty && verified.isEmpty }
  }

  private(set) var unwritten = Unwritten()
  private var deliveries = GracePeriods<Int64>()
  /// The number of readers of each file that has any.
  private var readers: [Int64: Int] = [:]

  /// Records a use. A file that was delivered by path is retained from then on.
  mutating func record(_ id: Int64, _ use: Use) {
    if use.isDelivery { recordDelivery(of: id, at: use.at) }
    unwritten.uses[id, default: Use(at: use.at, times: 0, isDelivery: false)].add(use)
  }

  /// Records a delivery without counting a use, for a new row that is written with its first delivery.
  mutating func recordDelivery(of id: Int64, at time: Int) { deliveries.record(id, at: time) }

  /// Records that the digest of a file matched. Returns false if that was recorded before.
  mutating func recordVerified(_ id: Int64) -> Bool { unwritten.verified.insert(id).inserted }

  /// Returns and removes what must be written to the index.
  mutating func drain() -> Unwritten {
    defer { unwritten = Unwritten() }
    return unwritten
  }

  /// Removes the uses of a deleted row. Its deliveries still retain the file.
  mutating func rowDeleted(_ id: Int64) { unwritten.uses[id] = nil }

  /// Removes deliveries that are over 60 s old.
  mutating func expire(now: Int) { _ = deliveries.removeExpired(now: now) }

  /// Retains a file until `removeReader`. Readers are counted.
  mutating func addReader(of id: Int64) { readers[id, default: 0] += 1 }

  /// Returns whether the file has no readers any more.
  mutating func removeReader(of id: Int64) -> Bool {
    guard let count = readers[id] else {
      assertionFailure("each removeReader must follow an addReader")
      return false
    }
    readers[id] = count > 1 ? count - 1 : nil
    return count == 1
  }

  func hasReaders(_ id: Int64) -> Bool { readers[id] != nil }

  /// When the file may be deleted; nil if it may be deleted now. For a file with readers, when to ask again.
  ///
  /// A delivery in the future, recorded before the clock was set back, does not count.
  ///
  /// - Parameters:
  ///   - peerDelivery: the last delivery by a peer that may not be in the index yet.
  ///   - hasPeers: whether peers may have delivered the file. The index then knows their deliveries only after the
  ///     interval in which they flush them.
  func retentionEnd(of record: FileRecord, peerDelivery: Int?, hasPeers: Bool, now: Int) -> Int? {
    if hasReaders(record.id) { return now + deliveredFileLifetime }
    let delivered = max(deliveries[record.id] ?? 0, record.deliveredAt, peerDelivery ?? 0)
    let until = endOfLife(deliveredAt: delivered) + (hasPeers ? MaintenanceSchedule.flushInterval : 0)
    return until > now && delivered <= now + deliveredFileLifetime ? until : nil
  }
}
