internal import HTTPCaching
internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import ImageStore

/// What the cache offers for a load: one stored response, and its bytes where the memory tier has them.
struct Candidate: Sendable {
  var response: StoredResponse
  var bytes: [UInt8]?
  var place: Place
  var retention = Retention.allowed

  /// Whether neither it nor what is made of it may be kept.
  var isTransient: Bool { retention != .allowed }

  enum Retention: Sendable, Hashable {
    case allowed
    /// The load, or what the server said of it, does not allow it.
    case forbidden
    /// It has been cleared since it was found.
    case cleared
  }

  enum Place: Sendable, Equatable {
    case memory
    case disk
    /// A read-only directory, by its number.
    case readOnly(Int)
    /// A scratch file, by its path.
    case scratch(String)
  }

  /// What two look-ups found together, each once, less the variants of originals that have been replaced since.
  static func merging(_ known: [Candidate], _ found: [Candidate]) -> [Candidate] {
    let ids = Set(known.map(\.response.id))
    return current(known + found.filter { !ids.contains($0.response.id) })
  }

  /// All but the variants of originals that have been replaced since.
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

/// What belongs to a job beside its place in the queue.
@LoadingActor
final class JobRecord {
  /// The load that began it: what is sent is the same for all that join.
  let first: ActiveLoad
  /// What the cache has for the key; nil while it is being looked for.
  var candidates: [Candidate]?
  /// Which of the candidates the transfer asks about, and the fields that ask.
  var revalidationTargetIndex: Int?
  var conditions = HeaderFields()
  /// What takes in the body of the transfer that runs.
  var download: Download?
  /// Whether the disk has what an earlier load has left, as far as is known.
  var mayResume = false
  /// How other workers know the transfer. See PeerCoordinator.
  var leaseRequest: LeaseRequest?
  private var activeState: ActiveState?
  /// Whether a preview of what is there is being made. See ProgressivePreviews.
  var isPreviewing = false
  /// Where those that have left wanted the result kept. See TransferAbandonment.
  var departedStorePolicy: LoadRequest.Places = []
  /// Whether an attempt ended by a time-out: the connections that are open may be dead.
  var hasTimedOut = false
  /// False once the cache was cleared: the result is delivered, but not kept.
  var mayKeep = true

  init(first: ActiveLoad) { self.first = first }

  /// What there is once its turn has come. Most jobs wait, and have none.
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
    var preview: DecodeTicket?
  }

  private var madeActiveState: ActiveState {
    if let activeState { return activeState }
    let made = ActiveState()
    activeState = made
    return made
  }

  /// The transfer that runs.
  var transfer: TransferID? {
    get { activeState?.transfer }
    set { madeActiveState.transfer = newValue }
  }

  /// What the attempt before left, while none is running. See TransferResumption.
  var partialBody: PartialBody? {
    get { activeState?.partialBody }
    set { if newValue != nil || activeState != nil { madeActiveState.partialBody = newValue } }
  }

  var startedAt: ContinuousClock.Instant? {
    get { activeState?.startedAt }
    set { madeActiveState.startedAt = newValue }
  }

  /// The right to the transfer, among all workers. See PeerCoordinator.
  var lease: Lease? {
    get { activeState?.lease }
    set { if newValue != nil || activeState != nil { madeActiveState.lease = newValue } }
  }

  /// How long the name was looked up before the transfer.
  var nameDuration: Duration? {
    get { activeState?.nameDuration }
    set { if newValue != nil || activeState != nil { madeActiveState.nameDuration = newValue } }
  }

  /// How often the cache had been cleared when the transfer began, by all workers.
  var clearCount: UInt64? {
    get { activeState?.clearCount }
    set { madeActiveState.clearCount = newValue }
  }

  /// Since when it has waited for other workers.
  var peerWaitStart: ContinuousClock.Instant? {
    get { activeState?.peerWaitStart }
    set { madeActiveState.peerWaitStart = newValue }
  }

  /// Whether it waits for other workers again if it has to.
  var mayWaitForPeer: Bool {
    get { activeState?.mayWaitForPeer ?? true }
    set { madeActiveState.mayWaitForPeer = newValue }
  }

  /// The preview that a decoder makes, or is to make.
  var preview: DecodeTicket? {
    get { activeState?.preview }
    set { if newValue != nil || activeState != nil { madeActiveState.preview = newValue } }
  }

  /// What has come, while it is being stored.
  var arrived: CachedResponse? {
    get { activeState?.arrived }
    set { madeActiveState.arrived = newValue }
  }

  var identity: CacheIdentity { CacheIdentity(key: first.request.key, partition: first.partition) }

  /// Marks those candidates of which a clear has left nothing.
  ///
  /// - Returns: whether it has reached any.
  func mark(_ clear: Clear) -> Bool {
    guard let known = candidates else { return false }
    for place in known.indices { candidates?[place].mark(clear) }
    return known.contains { clear.matches($0.response) }
  }

  /// The stored response that the transfer asks about.
  var revalidationTarget: Candidate? { revalidationTargetIndex.flatMap { candidates?[$0] } }
}
