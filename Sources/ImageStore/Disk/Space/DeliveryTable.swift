internal import Threads

/// Files that another thread or a peer delivers without waiting for the disk thread. They are not deleted.
///
/// The disk thread deletes a file inside `unlessDelivered`; the other thread records its delivery before it checks that
/// the file exists. In either order, no path is delivered whose file is deleted right after.
final class DeliveryTable: Sendable {
  private struct Deliveries {
    var uses: [Int64: RetentionTracker.Use] = [:]
    var lastTime = Int.min
    var peerTable: PeerTable?
  }

  private let deliveries = Locked(Deliveries())

  /// Records a delivery and counts a use. Returns true once a second: the disk thread must then drain the deliveries, so
  /// that peers see them in the index.
  func record(_ id: Int64, at time: Int) -> Bool {
    deliveries.withLock { deliveries in
      deliveries.uses[id, default: RetentionTracker.Use(at: time, times: 0)].add(RetentionTracker.Use(at: time))
      deliveries.peerTable?.recordDelivery(of: id, at: time)
      defer { deliveries.lastTime = time }
      return deliveries.lastTime != time
    }
  }

  /// Publishes to the peers that the disk thread delivers the file.
  func announce(_ id: Int64, at time: Int) { deliveries.withLock { $0.peerTable?.recordDelivery(of: id, at: time) } }

  /// The peer table; nil if there is none.
  var peerTable: PeerTable? { deliveries.withLock { $0.peerTable } }

  func setPeerTable(_ peerTable: PeerTable?) { deliveries.withLock { $0.peerTable = peerTable } }

  /// Runs `remove` unless the file was delivered since the last `drain`. A concurrent `record` waits until `remove`
  /// returns.
  func unlessDelivered(_ id: Int64, now: Int, _ remove: () -> Void) -> Bool {
    deliveries.withLock { deliveries in
      if deliveries.uses[id] != nil { return false }
      if let peerTable = deliveries.peerTable { return peerTable.unlessDelivered(id, now: now, remove) }
      remove()
      return true
    }
  }

  /// Returns and removes the uses since the last call, for the usage journal.
  func drain() -> [Int64: RetentionTracker.Use] {
    deliveries.withLock { deliveries in
      if deliveries.uses.isEmpty { return [:] }
      defer { deliveries.uses = [:] }
      return deliveries.uses
    }
  }
}
