internal import HTTPCaching
internal import HTTPTransport
internal import HTTPTypes
internal import Text

/// Hears what becomes of a load. Called on the loading thread: events first, then `ended` exactly once, then nothing.
@LoadingActor
public protocol LoadObserver: AnyObject {
  func load(_ id: LoadID, did event: LoadEvent)
  func load(_ id: LoadID, ended result: Result<LoadedImage, LoadError>)
}

/// What happens to a load on its way.
public enum LoadEvent: Sendable {
  /// A transfer runs; `attempt` counts from 1.
  case started(attempt: Int)
  /// Bytes of the body so far; of how many, where the server said.
  case progress(received: Int64, total: Int64?)
  /// `attempt` is the one to come.
  case retrying(attempt: Int, delay: Duration, kind: LoadError.Kind)
  /// What the cache has, while it is being revalidated.
  case cached(LoadedImage)
  /// What is there of a progressive image: a scratch file, as `LoadedImage.path`, of so many complete scans.
  case preview(path: String, width: Int, height: Int, scan: Int)
}

/// A load that is not answered yet.
@LoadingActor
final class ActiveLoad {
  let id: LoadID
  let request: LoadRequest
  let partition: String
  let acceptedAt: ContinuousClock.Instant
  /// How many clears there had been when the load was accepted: it sees nothing of what they removed.
  let generation: Int
  let observer: any LoadObserver
  /// Whether the host knows nothing of it: an item is its prefetch's, and nobody waits for a revalidation in the
  /// background.
  let isInternal: Bool
  /// The priority at which a place in the queue is reserved for it, until it takes one or needs none.
  var place: Priority?
  /// How urgent it is now; the queue and the decodes go by it.
  var priority: Priority
  /// Set once what it waited for was gone before it could be decoded.
  var hasRestarted = false
  /// Set once what was cached turned out to be damaged: the cache is not asked again.
  var bypassesCache = false
  /// Set once the answer of a shared transfer did not fit this load. From then on it shares only answers that have come
  /// and fit, and no failures of other loads.
  var isUnshared = false
  /// Set once the `cached` event of `refresh` has been taken care of.
  var hasShownCached = false
  /// The last attempt of its job that it was told of: what gave way is the same attempt when it starts again.
  var startedAttempt: Int32 = 0
  /// Cleared once the disk tier did not take what was transferred for it.
  var isKept = true
  /// How the transfer went that brought its image.
  private(set) var transfer: TransferTiming?
  private var emitted: EmittedEvents?

  init(
    id: LoadID, request: LoadRequest, partition: String, acceptedAt: ContinuousClock.Instant, generation: Int,
    observer: any LoadObserver, isInternal: Bool
  ) {
    self.id = id
    self.request = request
    self.partition = partition
    self.acceptedAt = acceptedAt
    self.generation = generation
    self.observer = observer
    self.isInternal = isInternal
    priority = request.priority
  }

  var labels: LoadIndex.Labels {
    isInternal ? LoadIndex.Labels() : LoadIndex.Labels(url: request.url, group: request.group, slot: request.slot)
  }

  var jobKey: TransferKey { request.jobKey(in: partition, bypassingCache: bypassesCache) }

  /// What it was told of so far. An object, because a load that waits has been told of nothing.
  private final class EmittedEvents {
    /// The last progress, so that it only rises.
    var received: Int64 = -1
    /// How many scans, likewise.
    var scans = 0
    var showing: Showing?
  }

  private var madeEmitted: EmittedEvents {
    if let emitted { return emitted }
    let made = EmittedEvents()
    emitted = made
    return made
  }

  /// While the `cached` event of `refresh` is on its way. See CachedEventDelivery.
  var showing: Showing? {
    get { emitted?.showing }
    set { if newValue != nil || emitted != nil { madeEmitted.showing = newValue } }
  }

  final class Showing {
    /// How the load ends once it has had the event.
    var end: Result<LoadedImage, LoadError>?
  }

  /// What a result tells of the transfer. An object, because a load that waits has none.
  final class TransferTiming: Sendable {
    /// Until the transfer started, and until the first byte of the answer.
    let queued: Duration
    let firstByte: Duration
    /// As in `LoadedImage.Timing`.
    let name, connect, tls: Duration?
    /// Transfers that it took.
    let attempts: Int

    init(queued: Duration, firstByte: Duration, name: Duration?, summary: TransferSummary, attempts: Int) {
      self.queued = queued
      self.firstByte = firstByte
      self.name = name
      connect = summary.tcpDuration
      tls = summary.tlsDuration
      self.attempts = attempts
    }
  }

  /// Notes how the transfer went that brought its image. A load that joined late did not wait.
  func note(_ record: JobRecord, _ summary: TransferSummary, attempts: Int) {
    transfer = TransferTiming(
      queued: max(.zero, acceptedAt.duration(to: record.startedAt ?? acceptedAt)),
      firstByte: max(.zero, acceptedAt.duration(to: summary.firstByteAt)),
      name: summary.nameDuration ?? record.nameDuration, summary: summary, attempts: attempts)
  }

  /// Tells the observer, if the host asked for such events.
  func emit(_ event: LoadEvent) {
    let isWanted: Bool
    switch event {
    case .started(let attempt):
      isWanted = request.events.contains(.started) && attempt != startedAttempt
      startedAttempt = Int32(attempt)
    case .progress(let received, _):
      isWanted = request.events.contains(.progress) && received > emitted?.received ?? -1
      if isWanted { madeEmitted.received = received }
    case .retrying:
      isWanted = request.events.contains(.retrying)
      emitted?.received = -1
    case .cached:
      isWanted = true
    case .preview(_, _, _, let scan):
      isWanted = awaitsPreview(of: scan)
      if isWanted { madeEmitted.scans = scan }
    }
    if isWanted { observer.load(id, did: event) }
  }

  /// A transfer that starts over comes to the scans of before again.
  func awaitsPreview(of scans: Int) -> Bool { request.events.contains(.preview) && scans > emitted?.scans ?? 0 }
}

extension LoadRequest {
  /// - Parameter bypassingCache: whether the cache is known to have nothing of use.
  func jobKey(in partition: String, bypassingCache: Bool) -> TransferKey {
    TransferKey(
      key: ExactString(key), partition: partition, headers: .all(coalescingHeaders),
      revalidation: revalidation(bypassingCache),
      acceptsAnything: validation == .none, maxBytes: maxBytes, timeoutMs: timeout.milliseconds, retries: retries)
  }

  /// The headers by which a load is another transfer while no response is known, in an order of their own.
  ///
  /// Which representation a server chooses may depend on any field, `accept` and `user-agent` first of all. The only
  /// ones left out are those that by their definition say nothing about it: the urgency of RFC 9218 and the marks of
  /// W3C Trace Context, which are others in each request. A response whose Vary names them is nevertheless told apart
  /// by them.
  var coalescingHeaders: HeaderFields {
    let telling = headers.lines.contains(where: Self.isTrivial) ? headers.lines.filter { !Self.isTrivial($0) } : nil
    // Those of the options come in the same order each time.
    if fields.own.lines.allSatisfy(Self.isTrivial) { return telling.map(HeaderFields.init) ?? headers }
    return HeaderFields((telling ?? headers.lines).sorted { $0.name < $1.name })
  }

  private static func isTrivial(_ field: HeaderField) -> Bool {
    switch field.name {
    case "priority", "traceparent", "tracestate": true
    default: false
    }
  }

  private func revalidation(_ bypassingCache: Bool) -> TransferKey.Revalidation {
    if bypassingCache && cacheMode != .noStore { return .bypassed }
    return switch cacheMode {
    case .default, .forceCache, .onlyIfCached: .whenStale
    case .noCache, .refresh: .always
    case .reload: .bypassed
    case .noStore: .unused
    }
  }
}

extension Duration {
  /// Whole milliseconds, rounded down.
  public var milliseconds: Int64 {
    // It is in every answer from memory, and the division takes time.
    if self == .zero { return 0 }
    let (seconds, attoseconds) = components
    return seconds * 1000 + attoseconds / 1_000_000_000_000_000
  }
}
