internal import HTTPTypes
public import ImageCodec
internal import ImageStore
internal import Platform
internal import Text
internal import Threads

/// The part that a job takes in single flight across processes. See PeerCoordinator.
@LoadingActor
final class PeerClaim {
  fileprivate(set) var request: LeaseRequest
  /// The exclusive right among all workers to transfer the image.
  private(set) var lease: Lease?
  /// When the job first waited for a peer.
  fileprivate var waitStart: Instant?
  /// Whether the job may wait for a peer again.
  fileprivate var mayWait = true

  fileprivate init(_ request: LeaseRequest) { self.request = request }

  fileprivate func hold(_ lease: Lease) { self.lease = lease }

  /// Passes the lease on; it ends with its last reference.
  func takeLease() -> Lease? { lease.take() }

  /// Ends the lease as if it had never existed: the response is of no use to the peers.
  func abandonLease() { lease.take()?.abandon() }
}

/// Single flight across processes: one transfer for an image among all workers that share a cache directory, and the
/// clears that the other workers publish.
///
/// A job acquires the lease when its transfer is about to start, not while it is queued, and holds it until the
/// response is committed to the index. A job that finds the lease held is deferred: it needs no slot and loses no
/// attempt, and looks into the cache again when the peer is done. A job that must transfer in any case, or whose
/// response is not cached on disk, takes no lease.
///
/// The wait is bounded. A job does not wait for a peer that has died or stalled, nor again after a peer's transfer
/// stored nothing (it failed, or the response must not be cached), nor longer than `PeerWaitList.patience` in all.
@LoadingActor
final class PeerCoordinator {
  private let storage: DiskServices
  /// The coordination table shared by the workers of the cache directory.
  private var table: PeerTable?
  /// The number of clears published in the peer table that this worker has applied.
  private(set) var clearCount: UInt64 = 0
  private var waits = PeerWaitList()
  /// The claims of the waiting jobs.
  private var claims: [JobID: PeerClaim] = [:]

  init(storage: DiskServices) { self.storage = storage }

  // MARK: - Leases

  /// Makes the claim of a job before its cache lookup, so that a peer's commit after the lookup is detected.
  func claim(_ request: LoadRequest, in partition: String) -> PeerClaim? {
    guard let table, request.store.contains(.disk), case .http = request.source else { return nil }
    return PeerClaim(table.leaseRequest(request.sharedHash(in: partition)))
  }

  /// Updates the claim before a repeated cache lookup.
  func refresh(_ claim: PeerClaim) { table?.refresh(&claim.request) }

  enum LeaseAnswer {
    /// The transfer may start, with or without a lease.
    case granted
    /// A peer may have stored the response: look into the cache again.
    case cacheChanged
    /// A peer holds the lease. `poll` returns the job when its wait is over.
    case held
  }

  func acquireLease(_ claim: PeerClaim, for job: JobID, at now: Instant) -> LeaseAnswer {
    guard claim.lease == nil, let table else { return .granted }
    switch table.acquire(&claim.request) {
    case .acquired(let lease): claim.hold(lease)
    case .none: break
    case .cacheChanged: return .cacheChanged
    case .held:
      let since = claim.waitStart ?? now
      guard claim.mayWait, now < since + PeerWaitList.patience else { return .granted }
      claim.waitStart = since
      claims[job] = claim
      waits.add(job, at: now)
      return .held
    }
    return .granted
  }

  /// Returns the jobs whose wait for a peer is over. Some may have ended meanwhile.
  func poll(at now: Instant) -> [JobID] {
    guard let due = waits.nextLook, due <= now else { return [] }
    let over = waits.waiting.filter { isOver($0, at: now) }
    for job in over { claims[job] = nil }
    waits.remove(Set(over), at: now)
    if let tier = storage.tier, waits.takeSurvey(at: now) {
      storage.executor.run { tier.assumeIsolated { $0.detectDeadPeersNow() } }
    }
    return over
  }

  private func isOver(_ job: JobID, at now: Instant) -> Bool {
    guard let claim = claims[job], let table else { return true }
    switch table.progress(of: claim.request) {
    case .over(let failed):
      if failed { claim.mayWait = false }
      return true
    case .running(let worker):
      if waits.hasStopped(worker, beats: table.beats(of: worker), at: now) {
        table.revoke(claim.request, from: worker)
        return true
      }
      return claim.waitStart.map { $0 + PeerWaitList.patience <= now } ?? true
    }
  }

  /// The process that holds the lease on the transfer of an image: this one or a peer.
  func leaseHolder(of request: LoadRequest, in partition: String) -> Int? {
    table.flatMap { $0.holder(of: $0.leaseRequest(request.sharedHash(in: partition)))?.process }
  }

  /// Sends a heartbeat if peers may be waiting for a lease of this worker. Returns when to call again.
  func sendHeartbeat(at now: Instant) -> Instant? {
    guard let table, table.hasLeases else { return waits.nextLook }
    table.heartbeat()
    let nextBeat = now + .seconds(1)
    return min(waits.nextLook ?? nextBeat, nextBeat)
  }

  // MARK: - Clears of peers

  /// Returns the clears that peers have published since the last call. Reads one word of shared memory if there are
  /// none.
  func takeClearings() -> [PeerTable.Clearing] {
    guard let table, table.clearCount != clearCount else { return [] }
    return table.drainClearings(since: &clearCount)
  }

  /// Attaches to the peer table of a cache directory that has been created or recreated.
  ///
  /// - Returns: whether clears may have been missed, so that everything in memory must be cleared.
  func reattach() -> Bool {
    guard let current = storage.tier?.peerTable, current !== table else { return false }
    defer { (table, clearCount) = (current, current.clearCount) }
    return table != nil
  }
}

extension LoadRequest {
  /// A hash that is equal in all workers for the same request: URL, key, partition and request headers.
  /// All headers count, since it is unknown at this point which of them matter.
  public func sharedHash(in partition: String) -> UInt64 {
    var hash = FNV1a()
    func combine(_ text: String) {
      hash.combine(text.utf8)
      // 0xff never occurs in UTF-8, so it separates one text from the next.
      hash.combine(0xff)
    }
    if case .http(let url) = source { combine(url.requestURL) }
    combine(key)
    combine(partition)
    for line in headers.lines {
      combine(line.name)
      combine(line.value)
    }
    return hash.value
  }
}

/// The workers of the cache directory share the number of decodes. Without a peer table, the worker has its own.
extension DiskServices: SharedDecodes {
  public func begin(_ count: Int, limit: Int) -> Bool {
    tier?.peerTable?.beginDecode(count, limit: limit) ?? true
  }

  public func record(_ count: Int) { tier?.peerTable?.recordDecodes(count) }
}
