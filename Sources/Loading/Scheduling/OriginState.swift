public import HTTPTypes
public import Platform
internal import Threads

/// The state of an origin with jobs, for `stats`.
public struct OriginState: Sendable, Equatable {
  public var origin: Origin
  public var active: Int
  public var waiting: Int
  /// The current limit of concurrent transfers.
  public var window: Int
  public var health: Health
  /// The time before which no transfer starts.
  public var heldUntil: Instant?
  /// Nil if nothing waits.
  public var reason: WaitReason?

  /// The raw values are the names in the protocol.
  public enum Health: String, Sendable, CaseIterable {
    case healthy
    /// It has refused more transfers than its window has now.
    case limited
    case suspended, probing, down
  }
}

/// The reason why the waiting jobs of an origin do not start. The raw values are the names in the protocol.
public enum WaitReason: String, Sendable, CaseIterable {
  /// The server sent Retry-After.
  case retryAfter
  /// The server answered 429 or 503 without Retry-After.
  case unavailable
  /// No connection could be established, or the server did not answer on one.
  case unreachable, unresponsive
  /// `--rate` delays the next start.
  case rate
  /// The host name is being looked up.
  case resolving
  /// The robots.txt of the origin is being loaded, or its many rules are being read.
  case robots
  /// Attempts failed, and the next ones are not due yet.
  case retry
  /// Another worker that shares the cache transfers it.
  case otherWorker
  /// The origin has reached its limit of concurrent transfers.
  case perHostLimit
  /// The global limit is reached, or the disk or the decoders are behind.
  case concurrencyLimit
  /// The host has paused the worker, or does not read its output.
  case paused
}

/// The state of the origins, for `stats` and the log.
extension Scheduler {
  /// The busiest origins among those that have jobs or are suspended or down, in descending order.
  ///
  /// - Parameter heldBack: the items that wait outside the scheduler, to be included.
  func originStates(atMost limit: Int = .max, heldBack: [Origin: Int] = [:]) -> [OriginState] {
    var busiest: [OriginState] = []
    let putOff = putOff
    for id in origins.ids {
      let record = origins[id.slot]
      guard record.isReported else { continue }
      let waiting =
        queue.count(of: id.slot) + putOff.byOrigin[id.slot, default: 0] + heldBack[record.origin, default: 0]
      let state = state(of: id.slot, waiting: waiting, reason: waiting > 0 ? reason(id.slot, putOff) : nil)
      // Skip most origins: few of ten thousand are busier than the last of a hundred already found.
      if busiest.count >= limit {
        guard let last = busiest.last, state.precedes(last) else { continue }
        busiest.removeLast()
      }
      busiest.insert(state, at: busiest.partitioningIndex { state.precedes($0) })
    }
    return busiest
  }

  /// The number of origins in each state, of those that have jobs or are suspended or down. O(n) in all origins.
  var originCounts: [OriginState.Health: Int] {
    origins.ids.reduce(into: [:]) { counts, id in
      let record = origins[id.slot]
      if record.isReported { counts[record.stateOfHealth, default: 0] += 1 }
    }
  }

  func state(of slot: Int32, waiting: Int, reason: WaitReason?) -> OriginState {
    let record = origins[slot]
    return OriginState(
      origin: record.origin, active: record.active, waiting: waiting, window: record.window.size,
      health: record.stateOfHealth, heldUntil: record.health.until, reason: reason)
  }

  /// The waiting jobs that are not in the queue.
  struct PutOff {
    var byPriority = PriorityCounts()
    var byOrigin: [Int32: Int] = [:]
    /// The origins of the jobs that wait for a peer, of those that wait for the cache, and of those that wait for a
    /// permission.
    var awaitingPeer: Set<Int32> = []
    var awaitingCache: Set<Int32> = []
    var awaitingPermission: Set<Int32> = []
  }

  /// The jobs that wait for their next attempt, for a peer, for the cache or for a permission. O(n) in all jobs.
  var putOff: PutOff {
    var counts = PutOff()
    guard jobs.backingOffCount + jobs.deferredCount > 0 else { return counts }
    for id in jobs.ids {
      let (phase, origin) = (jobs[id.slot].phase, jobs[id.slot].origin)
      guard phase == .backingOff || phase.isDeferred else { continue }
      counts.byPriority[jobs[id.slot].priority] += 1
      counts.byOrigin[origin, default: 0] += 1
      if phase == .awaitingPeer { counts.awaitingPeer.insert(origin) }
      if phase == .awaitingCache { counts.awaitingCache.insert(origin) }
      if phase == .awaitingPermission { counts.awaitingPermission.insert(origin) }
    }
    return counts
  }

  /// The reason why jobs of the origin wait; nil if they would start at once.
  private func reason(_ slot: Int32, _ putOff: PutOff) -> WaitReason? {
    let (record, active) = (origins[slot], origins[slot].active)
    if record.health.state != .healthy, let reason = record.health.reason { return reason }
    if isPaused { return .paused }
    if putOff.awaitingPermission.contains(slot) { return .robots }
    if queue.count(of: slot) == 0 {
      if putOff.awaitingPeer.contains(slot) { return .otherWorker }
      return putOff.awaitingCache.contains(slot) ? .concurrencyLimit : .retry
    }
    if record.name == .asked { return .resolving }
    if active >= record.window.size { return .perHostLimit }
    if record.nextStart != nil { return .rate }
    return hasFreePermit && !queue.waitsForDecoders(slot) ? nil : .concurrencyLimit
  }
}

extension Scheduler.OriginRecord {
  /// Whether the origin has jobs, or is suspended or down.
  fileprivate var isReported: Bool { !jobs.isEmpty || health.until != nil }

  /// Whether the name lookup, the health, the window and the rate permit a transfer to start.
  var mayStart: Bool { name != .asked && active < health.allowance(window: window.size) && nextStart == nil }

  /// Whether the record is that of an origin that was never used.
  var isAsNew: Bool { health.isClean && !window.hasLearned && !isHTTP2 && nextStart == nil }

  var stateOfHealth: OriginState.Health {
    switch health.state {
    case .healthy: window.isRefused ? .limited : .healthy
    case .suspended: .suspended
    case .probing: .probing
    case .down: .down
    }
  }
}

extension OriginHealth {
  var reason: WaitReason? {
    switch cause {
    case .retryAfter: .retryAfter
    case .unavailable: .unavailable
    case .unreachable: .unreachable
    case .unresponsive: .unresponsive
    case nil: nil
    }
  }
}

extension OriginState {
  /// Orders by descending load, then by name.
  fileprivate func precedes(_ other: OriginState) -> Bool {
    let (own, others) = (active + waiting, other.active + other.waiting)
    guard own == others else { return own > others }
    return (origin.host, origin.port, origin.scheme) < (other.origin.host, other.origin.port, other.origin.scheme)
  }
}

extension Array {
  /// The first index whose element satisfies `belongsAfter`, as all later ones must. O(log n).
  fileprivate func partitioningIndex(where belongsAfter: (Element) -> Bool) -> Int {
    var (low, high) = (startIndex, endIndex)
    while low < high {
      let middle = low + (high - low) / 2
      if belongsAfter(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
