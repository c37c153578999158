internal import HTTPCaching
internal import HTTPTypes
internal import ImageStore
internal import Platform
internal import Text

/// Receives the events and the end of a load. Called on the loading thread: events first, then `ended` exactly once,
/// then nothing.
@LoadingActor
public protocol LoadObserver: AnyObject {
  func load(_ id: LoadID, did event: LoadEvent)
  func load(_ id: LoadID, ended result: Result<LoadedImage, LoadError>)
}

/// An event of a load before its end.
public enum LoadEvent: Sendable {
  /// A transfer has started; `attempt` counts from 1.
  case started(attempt: Int)
  /// The bytes of the body received so far, and the total if the server declared it.
  case progress(received: Int64, total: Int64?)
  /// The attempt failed; `attempt` is the number of the next one.
  case retrying(attempt: Int, delay: Duration, kind: LoadError.Kind)
  /// The cached image, while it is being revalidated.
  case cached(LoadedImage)
  /// A preview of a progressive image, as a scratch file like `LoadedImage.path`; `scan` is the number of complete
  /// scans.
  case preview(path: String, width: Int, height: Int, scan: Int)
}

/// A load that has not ended yet.
@LoadingActor
final class ActiveLoad {
  let id: LoadID
  let request: LoadRequest
  let partition: String
  /// The number of clears when the load was accepted: it must not see what they removed.
  let generation: Int
  let observer: any LoadObserver
  /// Whether the load is unknown to the host: an item of a prefetch, or a background revalidation.
  var isInternal: Bool { requester != .host }
  let requester: LoadReport.Requester
  /// The priority at which a queue place is reserved for the load, until it joins the queue or needs no place.
  var place: Priority?
  /// The current priority; the queue and the decodes use it.
  var priority: Priority
  /// Whether the load was restarted because its image was gone before it could be decoded.
  var hasRestarted = false
  /// Whether the cached image was found to be damaged: the load does not look into the cache again.
  var bypassesCache = false
  /// False if the disk tier could not store the image that was transferred for the load.
  var isKept = true
  /// While its outputs are delivered: the moment from which it can no longer end in another way.
  var commitPoint: CommitPoint?
  var timeline: LoadTimeline
  /// The number of the job whose transfer the load last waited for.
  var transfer: UInt64?
  /// The number of attempts of that transfer.
  var attempts = 1
  private var emitted = EmittedEvents()

  init(
    id: LoadID, request: LoadRequest, partition: String, acceptedAt: Instant, generation: Int,
    observer: any LoadObserver, requester: LoadReport.Requester
  ) {
    (self.id, self.request, self.partition) = (id, request, partition)
    timeline = LoadTimeline(acceptedAt: acceptedAt)
    (self.generation, self.observer, self.requester) = (generation, observer, requester)
    priority = request.priority
  }

  var labels: LoadIndex.Labels {
    isInternal ? LoadIndex.Labels() : LoadIndex.Labels(url: request.url, group: request.group, slot: request.slot)
  }

  var deadline: Instant? { request.deadline.map { timeline.acceptedAt.advanced(by: $0) } }

  var jobKey: TransferKey { request.jobKey(in: partition, bypassingCache: bypassesCache) }

  /// The progress of the events emitted so far.
  private struct EmittedEvents {
    /// The last reported attempt. An attempt that was put off starts again with the same number and is not reported
    /// twice.
    var attempt = 0
    /// The last reported progress, which must not decrease.
    var received: Int64 = -1
    /// The last reported number of scans, which must not decrease.
    var scans = 0
  }

  /// The load with the file that has been found for it, before it waits for anything else.
  func identified(_ file: HostPlace) -> ActiveLoad {
    var request = request
    request.source = .file(file)
    let load = ActiveLoad(
      id: id, request: request, partition: partition, acceptedAt: timeline.acceptedAt, generation: generation,
      observer: observer, requester: requester)
    load.priority = priority
    return load
  }

  /// The load joins another job, whose attempts are reported from the first.
  func resetAttempt() { emitted.attempt = 0 }

  /// Passes the event to the observer if the host requested such events.
  func emit(_ event: LoadEvent) {
    let isWanted: Bool
    switch event {
    case .started(let attempt):
      isWanted = request.events.contains(.started) && attempt != emitted.attempt
      emitted.attempt = attempt
    case .progress(let received, _):
      isWanted = request.events.contains(.progress) && received > emitted.received
      if isWanted { emitted.received = received }
    case .retrying:
      isWanted = request.events.contains(.retrying)
      emitted.received = -1
    case .cached: isWanted = true
    case .preview(_, _, _, let scan):
      isWanted = awaitsPreview(of: scan)
      if isWanted { emitted.scans = scan }
    }
    if isWanted { observer.load(id, did: event) }
  }

  /// Whether a preview with so many scans is wanted. A transfer that starts over reaches earlier scans again.
  func awaitsPreview(of scans: Int) -> Bool { request.events.contains(.preview) && scans > emitted.scans }
}

extension LoadRequest {
  /// - Parameter bypassingCache: whether the cache is known to have no usable response.
  func jobKey(in partition: String, bypassingCache: Bool) -> TransferKey {
    TransferKey(
      key: ExactString(key), request: identity(in: partition), revalidation: revalidation(bypassingCache),
      acceptsAnything: validation == .none, maxBytes: maxBytes, timeoutMs: timeout.milliseconds, retries: retries)
  }

  func identity(in partition: String) -> RequestIdentity {
    let url =
      switch source {
      case .http(let resource): resource.requestURL
      case .inline: key
      case .file(let place): key + (place.version?.tag ?? "")
      }
    return RequestIdentity(url: ExactString(url), partition: partition, headers: coalescingHeaders)
  }

  /// The headers that distinguish transfers, in a canonical order.
  ///
  /// A server may select a representation by any field, `accept` and `user-agent` above all. Only fields that by
  /// definition say nothing about the representation are left out, as they differ from request to request: the urgency
  /// of RFC 9218 and the identifiers of W3C Trace Context. A response whose Vary names them still distinguishes loads
  /// by them.
  var coalescingHeaders: HeaderFields {
    let telling = headers.lines.contains(where: Self.isTrivial) ? headers.lines.filter { !Self.isTrivial($0) } : nil
    // The fields from the options always come in the same order.
    if fields.own.lines.allSatisfy(Self.isTrivial) { return telling.map(HeaderFields.init) ?? headers }
    return HeaderFields((telling ?? headers.lines).sorted { $0.name < $1.name })
  }

  private static func isTrivial(_ field: HeaderField) -> Bool {
    switch field.name {
    case "priority", "traceparent", "tracestate": true
    default: false
    }
  }

  /// The request of the load that revalidates a response which was just served stale.
  var forBackgroundRevalidation: LoadRequest {
    var request = self
    (request.cacheMode, request.delivery, request.events, request.priority) = (.noCache, .none, [], .low)
    (request.processing, request.saveTo, request.digest) = (nil, nil, nil)
    (request.slot, request.group) = (nil, nil)
    return request
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

/// The observer of loads without a host: background revalidations.
@LoadingActor
final class DiscardingObserver: LoadObserver {
  static let shared = DiscardingObserver()
  func load(_ id: LoadID, did event: LoadEvent) {}
  func load(_ id: LoadID, ended result: Result<LoadedImage, LoadError>) {}
}

extension Duration {
  /// The whole milliseconds, rounded down.
  public var milliseconds: Int64 {
    // Fast path: every answer from memory includes it, and the division takes time.
    if self == .zero { return 0 }
    let (seconds, attoseconds) = components
    return seconds * 1000 + attoseconds / 1_000_000_000_000_000
  }

  /// The duration for people, rounded: milliseconds below a second, otherwise seconds.
  public var text: String {
    let rounded = (self + .microseconds(500)).milliseconds
    return rounded < 1000 ? "\(rounded) ms" : "\((rounded + 500) / 1000) s"
  }
}

/// Limits the progress events of a load or a prefetch to ten a second, with the final one, which its owner sends in any
/// case.
struct ProgressThrottle {
  private static let interval = Duration.milliseconds(125)

  private var next: Instant

  init(at now: Instant) { next = now }

  /// Whether an event may be sent now. If so, the next one is due after the interval.
  mutating func isDue(at now: Instant) -> Bool {
    guard now >= next else { return false }
    next = now.advanced(by: Self.interval)
    return true
  }
}
