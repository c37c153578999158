import HTTPTypes
import Platform
import Text

@testable import Loading

/// A scheduler for tests: short names, a fixed clock, randomness from a seed.
struct Queue {
  private let box: Box
  var scheduler: Scheduler {
    _read { yield box.scheduler }
    _modify { yield &box.scheduler }
  }
  var now = Instant.now
  var random = SeededChance(state: 1)
  private var names = GenerationalIDPool<LoadID>()

  struct Place: Equatable {
    let load: LoadID
    let job: JobID
  }

  init(_ change: (inout SchedulerLimits) -> Void = { _ in }) {
    var limits = SchedulerLimits()
    // Most tests do not concern name lookups.
    limits.maxLookUps = 0
    change(&limits)
    box = Box(Scheduler(limits: limits))
  }

  /// The storage of the scheduler, which cannot be copied, for a queue that can.
  private final class Box {
    var scheduler: Scheduler
    init(_ scheduler: consuming Scheduler) { self.scheduler = scheduler }
  }

  static func key(
    _ name: String, url: String? = nil, partition: String = "", headers: HeaderFields = [:],
    revalidation: TransferKey.Revalidation = .whenStale, acceptsAnything: Bool = false, maxBytes: Int64 = 1 << 20,
    timeoutMs: Int64 = 15_000, retries: Int = 2
  ) -> TransferKey {
    TransferKey(
      key: ExactString(name),
      request: RequestIdentity(url: ExactString(url ?? name), partition: partition, headers: headers),
      revalidation: revalidation, acceptsAnything: acceptsAnything, maxBytes: maxBytes, timeoutMs: timeoutMs,
      retries: retries)
  }

  static func origin(_ host: String) -> Origin { Origin(scheme: "http", host: host, port: 80) }

  /// Subscribes a new load.
  mutating func subscribe(
    _ name: String, at host: String = "a", _ priority: Priority = .normal, needsDecoder: Bool = false,
    deadline: Duration? = nil, retries: Int = 2
  ) -> (load: LoadID, subscription: Scheduler.Subscription) {
    let load = names.take()
    let subscription = scheduler.subscribe(
      load, to: Self.key(name, retries: retries), of: Self.origin(host), priority: priority,
      needsDecoder: needsDecoder, deadline: deadline.map { now.advanced(by: $0) })
    return (load, subscription)
  }

  /// Subscribes a new load; a job created for it is queued.
  @discardableResult
  mutating func wait(
    for name: String, at host: String = "a", _ priority: Priority = .normal, needsDecoder: Bool = false,
    deadline: Duration? = nil, retries: Int = 2
  ) -> Place {
    let (load, subscription) = subscribe(
      name, at: host, priority, needsDecoder: needsDecoder, deadline: deadline, retries: retries)
    switch subscription {
    case .created(let job):
      _ = scheduler.enqueue(job)
      return Place(load: load, job: job)
    case .joined(let job, _): return Place(load: load, job: job)
    }
  }

  /// The names of the jobs that start now.
  mutating func starts() -> [String] {
    scheduler.takeStarts(at: now).map { scheduler.job($0)!.key.key.text }
  }

  /// Finds the transfers that have become quiet. The named ones are being answered, or have no request yet.
  mutating func findQuiet(answered: Set<String> = [], unsent: Set<String> = []) {
    let box = box
    // The key of a job does not change.
    let keys = Dictionary(
      uniqueKeysWithValues: box.scheduler.allJobs.map { ($0.serial, box.scheduler.job($0)!.key.key.text) })
    box.scheduler.findQuiet(at: now) {
      let name = keys[$0.serial]!
      return unsent.contains(name) ? nil : answered.contains(name)
    }
  }

  /// Fails a transfer; with a `retryAfter` the origin refused it.
  mutating func retry(_ job: JobID, after retryAfter: Duration? = nil) -> Scheduler.Failure {
    if let retryAfter { record(.refused(retryAfter: retryAfter), by: job) }
    return box.scheduler.retry(job, retryAfter: retryAfter, now: now, random: &random)
  }

  /// - Returns: the jobs that must end because their origin is down.
  @discardableResult
  mutating func record(
    _ signal: TransferSignal, by job: JobID, isHTTP2: Bool = false, error: LoadError? = nil, answered: Set<JobID> = []
  ) -> [JobID] {
    box.scheduler.record(signal, by: job, isHTTP2: isHTTP2, error: error, now: now, random: &random) {
      answered.contains($0)
    }
  }

  /// Records the signal of a transfer and ends its job.
  @discardableResult
  mutating func end(_ place: Place, _ signal: TransferSignal) -> [JobID] {
    defer { _ = scheduler.end(place.job) }
    return record(signal, by: place.job)
  }

  /// Records a refusal by an origin that a redirect led to.
  mutating func noteRefusal(at host: String, retryAfter: Duration) {
    let now = now
    var chance = random
    scheduler.record(.refused(retryAfter: retryAfter), at: Self.origin(host), now: now, random: &chance)
    random = chance
  }

  mutating func redirect(_ place: Place, to host: String, crawlDelay: Duration?) -> Scheduler.RedirectTurn {
    scheduler.redirect(place.job, to: Self.origin(host), crawlDelay: crawlDelay, now: now)
  }

  func state(of host: String = "a") -> OriginState? {
    scheduler.originStates().first { $0.origin.host == host }
  }

  /// - Returns: the loads whose deadline has passed.
  mutating func pass(_ duration: Duration) -> [LoadID] {
    now = now.advanced(by: duration)
    return scheduler.expired(at: now).loads
  }

  /// The loads that cannot wait until their jobs may start, in the order of their IDs.
  mutating func tooLate() -> [LoadID] {
    scheduler.takeTooLate().map(\.load).sorted { $0.serial < $1.serial }
  }

  func phase(_ job: JobID) -> Scheduler.Phase? { scheduler.job(job)?.phase }

  /// Whether nothing is left: no job, no origin, no count.
  var isSpotless: Bool {
    scheduler.isEmpty && scheduler.originStates().isEmpty && scheduler.activeCount == 0
      && scheduler.jobs.storingCount == 0 && scheduler.jobs.backingOffCount == 0
      && scheduler.jobs.deferredCount == 0 && scheduler.waiting == PriorityCounts()
      && scheduler.files.counts == PriorityCounts() && scheduler.jobs.lookingUpCount == 0
  }
}

extension TransferLimit: ExpressibleByIntegerLiteral {
  init(integerLiteral value: Int) { self = .fixed(value) }
}

extension LoadID {
  /// A load ID that no pool has allocated.
  init(_ number: Int32) { self.init(slot: number, serial: UInt64(number) << 32) }
}

/// A seeded generator (SplitMix64).
struct SeededChance: RandomNumberGenerator, Equatable {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }
}

/// A constant generator, which yields the lowest or the highest value of a range.
struct ConstantChance: RandomNumberGenerator {
  let value: UInt64
  mutating func next() -> UInt64 { value }
}
