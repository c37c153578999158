internal import Threads

/// Files that another thread, or another worker, hands out without waiting for the store's: what stands here is not
/// removed.
///
/// The store removes a file with `unlessPinned`, the other thread pins before it looks whether the file is there.
/// Whoever comes first, no path is handed out whose file goes right after.
final class PinTable: Sendable {
  private struct Pins {
    var uses: [Int64: UsageJournal.Use] = [:]
    var lastTime = Int.min
    var peerTable: PeerTable?
  }

  private let pins = Locked(Pins())

  /// Returns true once a second: the store should then take over what is pinned, for other workers to see.
  func pin(_ id: Int64, at time: Int) -> Bool {
    pins.withLock { pins in
      pins.uses[id, default: UsageJournal.Use(at: time, times: 0)].add(UsageJournal.Use(at: time))
      pins.peerTable?.noteDelivery(of: id, at: time)
      defer { pins.lastTime = time }
      return pins.lastTime != time
    }
  }

  /// Tells the other workers that the store hands out the file, or is about to.
  func announce(_ id: Int64, at time: Int) { pins.withLock { $0.peerTable?.noteDelivery(of: id, at: time) } }

  /// What the other workers read and write; nil where there is none.
  var peerTable: PeerTable? { pins.withLock { $0.peerTable } }

  func setBoard(_ peerTable: PeerTable?) { pins.withLock { $0.peerTable = peerTable } }

  /// Runs `remove` unless the file is pinned; a pin set meanwhile waits for it.
  func unlessPinned(_ id: Int64, now: Int, _ remove: () -> Void) -> Bool {
    pins.withLock { pins in
      if pins.uses[id] != nil { return false }
      if let peerTable = pins.peerTable { return peerTable.unlessDelivered(id, now: now, remove) }
      remove()
      return true
    }
  }

  /// Takes out what was pinned since the last call, for the store's own book.
  func take() -> [Int64: UsageJournal.Use] {
    pins.withLock { pins in
      if pins.uses.isEmpty { return [:] }
      defer { pins.uses = [:] }
      return pins.uses
    }
  }
}
