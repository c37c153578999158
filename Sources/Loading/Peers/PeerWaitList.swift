internal import ImageStore

/// The jobs that wait for what other workers transfer, and what is known of these workers.
struct PeerWaitList {
  /// How long a worker may show no sign of life before it loses its leases. One that lives does so each second.
  static let silence = Duration.seconds(3)
  /// How long a job waits for others in all; then it is transferred a second time.
  static let patience = Duration.seconds(60)
  /// How soon to look whether something has come, and how seldom when nothing comes.
  private static let shortest = Duration.milliseconds(5)
  private static let longest = Duration.milliseconds(100)
  /// How often to look whether workers have died.
  private static let survey = Duration.milliseconds(250)

  private(set) var waiting: [JobID] = []
  private(set) var nextLook: ContinuousClock.Instant?
  private var interval = shortest
  private var lastSurvey: ContinuousClock.Instant?
  private var signs: [UInt64: Sign] = [:]

  /// A worker's last count of heartbeats, when that was looked at, and how long it has been the same.
  private struct Sign {
    let beats: UInt64
    var seen: ContinuousClock.Instant
    var silence = Duration.zero
  }

  mutating func add(_ job: JobID, at now: ContinuousClock.Instant) {
    waiting.append(job)
    interval = Self.shortest
    nextLook = min(nextLook ?? now + interval, now + interval)
  }

  /// Takes out those whose wait is over, and says when to look again.
  mutating func remove(_ over: Set<JobID>, at now: ContinuousClock.Instant) {
    waiting.removeAll { over.contains($0) }
    interval = over.isEmpty ? min(interval * 2, Self.longest) : Self.shortest
    nextLook = waiting.isEmpty ? nil : now + interval
    if waiting.isEmpty { signs = [:] }
  }

  /// Whether it is time to look who has died.
  mutating func takeSurvey(at now: ContinuousClock.Instant) -> Bool {
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

  /// Whether a worker has not shown a sign of life for too long. What this one has not lived through itself does not
  /// count: where the system stood still, so did all.
  mutating func hasStopped(_ worker: UInt64, beats: UInt64, at now: ContinuousClock.Instant) -> Bool {
    guard var sign = signs[worker], sign.beats == beats else {
      signs[worker] = Sign(beats: beats, seen: now)
      return false
    }
    sign.silence += min(sign.seen.duration(to: now), Self.longest * 2)
    sign.seen = now
    signs[worker] = sign
    return sign.silence >= Self.silence
  }
}
