internal import HTTPCaching
internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import ImageStore

/// A stored response that may serve a load, with its bytes if the memory tier has them.
struct Candidate: Sendable {
  var response: StoredResponse
  var bytes: [UInt8]?
  var place: Place
  var retention = Retention.allowed

  /// Whether neither the response nor anything decoded from it may be cached.
  var isTransient: Bool { retention != .allowed }

  enum Retention: Sendable, Hashable {
    case allowed
    /// The request or the response forbids it.
    case forbidden
    /// The response has been cleared since it was found.
    case cleared
  }

  enum Place: Sendable, Equatable {
    case memory
    case disk
    /// A read-only directory, by its index.
    case readOnly(Int)
    /// A scratch file, by its path.
    case scratch(String)
  }

  /// Merges the results of two lookups: each response once, without variants of originals that have been replaced.
  static func merging(_ known: [Candidate], _ found: [Candidate]) -> [Candidate] {
    let ids = Set(known.map(\.response.id))
    return current(known + found.filter { !ids.contains($0.response.id) })
  }

  /// All candidates except variants of originals that have been replaced.
  static func current(_ all: [Candidate]) -> [Candidate] {
    guard all.contains(where: { !$0.response.variant.isEmpty }) else { return all }
    return all.filter { candidate in
      candidate.response.variant.isEmpty
        || all.allSatisfy { other in
          !other.response.variant.isEmpty || other.response.varyKey != candidate.response.varyKey
            || other.response.digest == candidate.response.originalDigest
        }
    }
  }
}

/// The state of a job beside its scheduling state, which is in `Scheduler`.
@LoadingActor
final class JobRecord {
  /// The load that created the job. Its request is the one that is sent; all loads that join agree with it in that.
  let first: ActiveLoad
  /// The stored responses for the key; nil until the cache lookup finishes.
  var candidates: [Candidate]?
  /// The transform variants that the lookup included.
  var lookedUpVariants: Set<String> = []
  /// The index of the candidate that the transfer revalidates, and the conditional request fields for that.
  var revalidationTargetIndex: Int?
  var conditions = HeaderFields()
  /// The consumer of the running transfer.
  var download: Download?
  /// Whether the disk tier may have a partial body of an earlier load.
  var mayResume = false
  /// The identity of the transfer in the peer table. See PeerCoordinator.
  var leaseRequest: LeaseRequest?
  private var activeState: ActiveState?
  /// Whether an attempt has timed out: the open connections may be dead.
  var hasTimedOut = false
  /// False after a matching clear: the result is delivered, but not cached.
  var mayKeep = true

  init(first: ActiveLoad) { self.first = first }

  /// The state of a job that has started. A separate object because most jobs wait and have none.
  private final class ActiveState {
    var transfer: TransferID?
    var partialBody: PartialBody?
    var startedAt: ContinuousClock.Instant?
    var lease: Lease?
    var nameDuration: Duration?
    var clearCount: UInt64?
    var peerWaitStart: ContinuousClock.Instant?
    var mayWaitForPeer = true
    var arrived: CachedResponse?
  }

  private var madeActiveState: ActiveState {
    if let activeState { return activeState }
    let made = ActiveState()
    activeState = made
    return made
  }

  /// The running transfer.
  var transfer: TransferID? {
    get { activeState?.transfer }
    set { madeActiveState.transfer = newValue }
  }

  /// The partial body of the previous attempt, until the next attempt starts. See TransferResumption.
  var partialBody: PartialBody? {
    get { activeState?.partialBody }
    set { if newValue != nil || activeState != nil { madeActiveState.partialBody = newValue } }
  }

  var startedAt: ContinuousClock.Instant? {
    get { activeState?.startedAt }
    set { madeActiveState.startedAt = newValue }
  }

  /// The exclusive right among all workers to transfer the image. See PeerCoordinator.
  var lease: Lease? {
    get { activeState?.lease }
    set { if newValue != nil || activeState != nil { madeActiveState.lease = newValue } }
  }

  /// The duration of the name lookup before the transfer.
  var nameDuration: Duration? {
    get { activeState?.nameDuration }
    set { if newValue != nil || activeState != nil { madeActiveState.nameDuration = newValue } }
  }

  /// `PeerTable.clearCount` at the start of the transfer: the clears so far by all workers of the directory.
  var clearCount: UInt64? {
    get { activeState?.clearCount }
    set { madeActiveState.clearCount = newValue }
  }

  /// When the job first waited for a peer.
  var peerWaitStart: ContinuousClock.Instant? {
    get { activeState?.peerWaitStart }
    set { madeActiveState.peerWaitStart = newValue }
  }

  /// Whether the job may wait for a peer again.
  var mayWaitForPeer: Bool {
    get { activeState?.mayWaitForPeer ?? true }
    set { madeActiveState.mayWaitForPeer = newValue }
  }

  /// The response of the transfer, while it is being stored.
  var arrived: CachedResponse? {
    get { activeState?.arrived }
    set { madeActiveState.arrived = newValue }
  }

  var identity: CacheIdentity { CacheIdentity(key: first.request.key, partition: first.partition) }

  /// Whether the response to the request that was sent also answers the load, by its Vary (RFC 9111 section 4.1). The
  /// loads of a job differ only in headers that do not affect the image: Vary may name such a header, but `*` does not
  /// refer to them.
  func isAnswered(_ load: ActiveLoad, by response: CachedResponse) -> Bool {
    load === first || load.request.headers == first.request.headers || Vary.matches(response, load.request.headers)
      || Vary.selectingFields(of: response.headers, from: [:]) == nil
  }

  /// Whether a response that must not be stored invalidates the stored one: a 200 shows that the stored one is out of
  /// date (RFC 9111 section 4.3.3).
  func supersedes(_ response: StoredResponse) -> Bool {
    response.status == 200 && !first.request.mayStore(status: 200, headers: response.headers) && first.request.letsKeep
  }

  /// Marks the candidates that a clear removes.
  ///
  /// - Returns: whether the clear matches any candidate.
  func mark(_ clear: Clear) -> Bool {
    guard let known = candidates else { return false }
    for place in known.indices { candidates?[place].mark(clear) }
    return known.contains { clear.matches($0.response) }
  }

  /// The stored response that the transfer revalidates.
  var revalidationTarget: Candidate? { revalidationTargetIndex.flatMap { candidates?[$0] } }
}
