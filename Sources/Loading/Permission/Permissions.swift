internal import HTTPTypes
internal import Platform
internal import Threads

/// The permissions of origins: the rules that are known, and the jobs that wait for those that are not.
///
/// A pure value: `PermissionCoordinator` loads each robots.txt as a job of the scheduler and carries out what follows.
struct Permissions {
  /// The longest time for which a robots.txt is used (RFC 9309 section 2.4).
  static let lifetime = Duration.seconds(86_400)
  /// The memory that all rules may take. The rules of an origin that was not asked about for the longest time go first.
  static let maxBytes = 16 << 20
  /// The memory that an origin takes without its rules, in bytes: an estimate.
  static let overhead = 400

  /// The value of User-Agent for which the rules are read; nil if robots.txt is ignored.
  let userAgent: String?
  private let maxBytes: Int
  private var known: [Origin: Known] = [:]
  /// The origins in the order in which they are looked at for removal.
  private var order = FIFO<(origin: Origin, number: UInt64)>()
  private var lastNumber: UInt64 = 0
  private(set) var byteCount = 0
  private var waits: [Origin: Wait] = [:]

  private struct Known {
    let rules: RobotsRules
    let until: Instant
    let number: UInt64
    /// Whether the rules were used since the origin was last looked at for removal.
    var isUsed = false

    var byteCount: Int { rules.byteCount + overhead }
  }

  private struct Wait {
    /// The load of the robots.txt.
    let load: LoadID
    /// The jobs that wait, in the order in which they came, and some that no longer do.
    var jobs: [JobID] = []
    var count = 0
  }

  init(userAgent: String?, maxBytes: Int = maxBytes) { (self.userAgent, self.maxBytes) = (userAgent, maxBytes) }

  var isObeyed: Bool { userAgent != nil }

  /// The number of origins whose rules are known.
  var count: Int { known.count }

  // MARK: - Rules

  /// The rules of an origin, if they are known and not too old.
  mutating func rules(of origin: Origin, now: Instant) -> RobotsRules? {
    guard let found = known[origin], found.until > now else { return nil }
    if !found.isUsed { known[origin]?.isUsed = true }
    return found.rules
  }

  /// Keeps the rules of an origin, and forgets others if they would take too much memory.
  mutating func remember(_ rules: RobotsRules, of origin: Origin, now: Instant) {
    lastNumber += 1
    let new = Known(rules: rules, until: now.advanced(by: Self.lifetime), number: lastNumber)
    if let old = known.updateValue(new, forKey: origin) { byteCount -= old.byteCount }
    byteCount += new.byteCount
    order.append((origin, lastNumber))
    while byteCount > maxBytes, known.count > 1, let oldest = order.popFirst() {
      guard let entry = known[oldest.origin], entry.number == oldest.number else { continue }
      if entry.isUsed || entry.number == lastNumber {
        known[oldest.origin]?.isUsed = false
        order.append(oldest)
      } else {
        known[oldest.origin] = nil
        byteCount -= entry.byteCount
      }
    }
    if order.count > 2 * known.count + 64 { order.removeAll { known[$0.origin]?.number != $0.number } }
  }

  // MARK: - Waits

  /// The load of the robots.txt of an origin, if jobs wait for it.
  func load(of origin: Origin) -> LoadID? { waits[origin]?.load }

  /// Begins to wait for the robots.txt of an origin.
  mutating func begin(_ load: LoadID, of origin: Origin) { waits[origin] = Wait(load: load) }

  /// Lets a job wait for the robots.txt of an origin, which is being loaded.
  mutating func wait(_ job: JobID, for origin: Origin) {
    waits[origin]?.jobs.append(job)
    waits[origin]?.count += 1
  }

  /// Ends the wait of a job.
  ///
  /// - Returns: the load of the robots.txt if no other job waits for it. The caller must cancel it.
  mutating func leave(_ origin: Origin) -> LoadID? {
    guard let wait = waits[origin] else { return nil }
    waits[origin]?.count -= 1
    guard wait.count == 1 else { return nil }
    waits[origin] = nil
    return wait.load
  }

  /// Ends the wait for the robots.txt of an origin.
  ///
  /// - Returns: the jobs that waited, and some that no longer do; nil if another load is responsible for the origin.
  mutating func end(_ load: LoadID, of origin: Origin) -> [JobID]? {
    guard waits[origin]?.load == load else { return nil }
    return waits.removeValue(forKey: origin)?.jobs
  }
}
