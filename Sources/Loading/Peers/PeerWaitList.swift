internal import ImageStore
internal import Platform

/// The jobs that wait for transfers of peers, and the heartbeats of these peers.
struct PeerWaitList {
  /// How long a peer's heartbeat may be unchanged before its leases are revoked. A live peer sends one each second.
  static let silence = Duration.seconds(3)
  /// How long a job waits for peers in all; after that it starts a second transfer.
  static let patience = Duration.seconds(60)
  /// The poll interval after a change; it doubles up to the second value while nothing changes.
  private static let minInterval = Duration.milliseconds(5)
  private static let maxInterval = Duration.milliseconds(100)
  /// How often to check whether peers have died.
  private static let survey = Duration.milliseconds(250)

  private(set) var waiting: [JobID] = []
  private(set) var nextLook: Instant?
  private var interval = minInterval
  private var lastSurvey: Instant?
  private var heartbeats: [UInt64: Heartbeat] = [:]

  /// The last heartbeat count of a peer, when it was read, and for how long it has been unchanged.
  private struct Heartbeat {
    let beats: UInt64
    var seen: Instant
    var silence = Duration.zero
  }

  mutating func add(_ job: JobID, at now: Instant) {
    waiting.append(job)
    interval = Self.minInterval
    nextLook = min(nextLook ?? now + interval, now + interval)
  }

  /// Removes the jobs whose wait is over and schedules the next poll.
  mutating func remove(_ over: Set<JobID>, at now: Instant) {
    waiting.removeAll { over.contains($0) }
    interval = over.isEmpty ? min(interval * 2, Self.maxInterval) : Self.minInterval
    nextLook = waiting.isEmpty ? nil : now + interval
    if waiting.isEmpty { heartbeats = [:] }
  }

  /// Whether the check for dead peers is due; if so, schedules the next one.
  mutating func takeSurvey(at now: Instant) -> Bool {
    guard !waiting.isEmpty else {
      lastSurvey = nil
      return false
    }
    guard let last = lastSurvey else {
      lastSurvey = now
      return false
    }
    guard last + Self.survey <= now else { return false }
    lastSurvey = now
    return true
  }

  /// Whether a peer's heartbeat has been unchanged for too long. Only time during which this process was running
  /// counts: after a system suspend all peers look stalled.
  mutating func hasStopped(_ worker: UInt64, beats: UInt64, at now: Instant) -> Bool {
    guard var heartbeat = heartbeats[worker], heartbeat.beats == beats else {
      heartbeats[worker] = Heartbeat(beats: beats, seen: now)
      return false
    }
    heartbeat.silence += min(heartbeat.seen.duration(to: now), Self.maxInterval * 2)
    heartbeat.seen = now
    heartbeats[worker] = heartbeat
    return heartbeat.silence >= Self.silence
  }
}
