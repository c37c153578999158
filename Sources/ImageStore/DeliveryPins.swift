internal import Threads

/// Files that another thread hands out without waiting for the store's: what stands here is not removed.
///
/// The store removes a file with `unlessPinned`, the other thread pins before it looks whether the file is there.
/// Whoever comes first, no path is handed out whose file goes right after.
final class DeliveryPins: Sendable {
  private struct Pins {
    var uses: [Int64: Deliveries.Use] = [:]
    var lastTime = Int.min
  }

  private let pins = Locked(Pins())

  /// Returns whether it is time that the store entered in its book what stands here, for other workers to see: true once
  /// a second.
  func pin(_ id: Int64, at time: Int) -> Bool {
    pins.withLock { pins in
      pins.uses[id, default: Deliveries.Use(at: time, times: 0)].add(Deliveries.Use(at: time))
      defer { pins.lastTime = time }
      return pins.lastTime != time
    }
  }

  /// Runs `remove` unless the file is pinned; a pin set meanwhile waits for it.
  func unlessPinned(_ id: Int64, _ remove: () -> Void) -> Bool {
    pins.withLock { pins in
      if pins.uses[id] != nil { return false }
      remove()
      return true
    }
  }

  /// Takes out what was pinned since the last call, for the store's own book.
  func take() -> [Int64: Deliveries.Use] {
    pins.withLock { pins in
      if pins.uses.isEmpty { return [:] }
      defer { pins.uses = [:] }
      return pins.uses
    }
  }
}
