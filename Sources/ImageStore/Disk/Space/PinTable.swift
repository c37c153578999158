internal import Threads

/// Files that another thread or a peer delivers without waiting for the disk thread. A pinned file is not deleted.
///
/// The disk thread deletes a file inside `unlessPinned`; the other thread pins it before it checks that the file
/// exists. In either order, no path is delivered whose file is deleted right after.
final class PinTable: Sendable {
  private struct Pins {
    var uses: [Int64: RetentionTracker.Use] = [:]
    var lastTime = Int.min
    var peerTable: PeerTable?
  }

  private let pins = Locked(Pins())

  /// Pins the file and counts a use. Returns true once a second: the disk thread must then drain the pins, so that
  /// peers see them in the index.
  func pin(_ id: Int64, at time: Int) -> Bool {
    pins.withLock { pins in
      pins.uses[id, default: RetentionTracker.Use(at: time, times: 0)].add(RetentionTracker.Use(at: time))
      pins.peerTable?.recordDelivery(of: id, at: time)
      defer { pins.lastTime = time }
      return pins.lastTime != time
    }
  }

  /// Publishes to the peers that the disk thread delivers the file.
  func announce(_ id: Int64, at time: Int) { pins.withLock { $0.peerTable?.recordDelivery(of: id, at: time) } }

  /// The peer table; nil if there is none.
  var peerTable: PeerTable? { pins.withLock { $0.peerTable } }

  func setPeerTable(_ peerTable: PeerTable?) { pins.withLock { $0.peerTable = peerTable } }

  /// Runs `remove` unless the file is pinned. A concurrent `pin` waits until `remove` returns.
  func unlessPinned(_ id: Int64, now: Int, _ remove: () -> Void) -> Bool {
    pins.withLock { pins in
      if pins.uses[id] != nil { return false }
      if let peerTable = pins.peerTable { return peerTable.unlessDelivered(id, now: now, remove) }
      remove()
      return true
    }
  }

  /// Returns and removes the pins since the last call, for the usage journal.
  func drain() -> [Int64: RetentionTracker.Use] {
    pins.withLock { pins in
      if pins.uses.isEmpty { return [:] }
      defer { pins.uses = [:] }
      return pins.uses
    }
  }
}
