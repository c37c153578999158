internal import HTTPTypes
internal import ImageStore
internal import Platform

/// Receives the progress and the end of a prefetch. Called on the loading thread; `ended` comes once, at the end.
@LoadingActor
public protocol PrefetchObserver: AnyObject {
  func prefetch(_ id: LoadID, progressed progress: Prefetch.Progress)
  /// The load of an item has started an attempt, or will, if its request wants such events.
  func prefetch(_ id: LoadID, item: Prefetch.Item, did event: LoadEvent)
  func prefetch(_ id: LoadID, item: Prefetch.Item, ended result: Result<LoadedImage, LoadError>)
  func prefetch(_ id: LoadID, ended result: Result<Prefetch.Summary, LoadError>)
}

/// Many loads with one answer, which bring images into the cache before they are needed.
///
/// Only some of its items are loads at any time (`PrefetchQueue`); the others cost only the memory of their requests.
@LoadingActor
public final class Prefetch: LoadObserver {
  public struct Item: Sendable {
    public var url: String
    /// Nil if the item never became a load.
    public var load: LoadID?
    /// Nil if the item could not become a request.
    public var headers: LoadHeaders?
  }

  public struct Progress: Sendable {
    public var done: Int
    public var total: Int
    public var bytes: Int64
  }

  public struct Summary: Sendable {
    public var total = 0
    public var downloaded = 0
    public var cached = 0
    public var failed = 0
    public var cancelled = 0
    /// The bytes of the downloaded images.
    public var bytes: Int64 = 0
    /// The first `maxErrors` errors.
    public var errors: [(url: String, error: LoadError)] = []

    var done: Int { downloaded + cached + failed + cancelled }
  }

  static let maxErrors = 100
  /// The number of items that are submitted before other work on the loading thread gets its turn.
  private static let maxBatch = 256

  let id: LoadID
  let group: String?
  private unowned let loader: Loader
  private let observer: any PrefetchObserver
  private var priority: Priority
  private var queue: PrefetchQueue
  /// The items that could not become requests and are not counted yet, the first one last.
  private var refused: [(url: String, error: LoadError)] = []
  private var summary = Summary()
  /// The items that are loads now.
  private var pending: [LoadID: Int32] = [:]
  private var progressThrottle = ProgressThrottle(at: .now)
  private var isSubmitting = false
  private var isContinuationScheduled = false
  private var isCancelled = false

  /// - Parameter queue: the items, with the queue places that are reserved for them.
  init(
    id: LoadID, group: String?, queue: PrefetchQueue, priority: Priority, loader: Loader,
    observer: any PrefetchObserver
  ) {
    (self.id, self.group, self.queue, self.priority) = (id, group, queue, priority)
    self.loader = loader
    self.observer = observer
    summary.total = queue.total
  }

  /// The number of items by origin that have a reserved place and are not loads yet.
  var heldBack: [(origin: Origin, count: Int)] { queue.heldBack }

  /// Counts the items that could not become requests as failed, and submits the others.
  func start(failing refused: [(url: String, error: LoadError)]) {
    summary.total += refused.count
    self.refused = refused.reversed()
    submitNext()
  }

  /// Fails or submits the items that may be submitted now.
  func submitNext() {
    guard !isSubmitting, !isContinuationScheduled else { return }
    isSubmitting = true
    var count = 0
    while count < Self.maxBatch, let (url, error) = refused.popLast() {
      count += 1
      // The URL is invalid, so it has no origin.
      loader.recordFailure(error, ofItem: url, at: Origin(scheme: "", host: "", port: 0))
      self.count(.failure(error), of: Item(url: url))
    }
    while count < Self.maxBatch, let (item, request, hasPlace) = queue.next() {
      count += 1
      let load = loader.makeID()
      pending[load] = item
      var own = request
      own.priority = priority
      loader.submit(own, as: load, for: self, requester: .prefetch, place: hasPlace ? priority : nil)
    }
    isSubmitting = false
    if count == Self.maxBatch {
      isContinuationScheduled = true
      LoadingActor.run { [weak self] in
        self?.isContinuationScheduled = false
        self?.submitNext()
      }
    }
    endIfDone()
  }

  func cancel() {
    isCancelled = true
    refused = []
    loader.jobs.release(places: queue.dropAll(), at: priority)
    for load in pending.keys.sorted() { loader.cancel(load) }
    endIfDone()
  }

  /// Returns false if it already has that priority.
  func setPriority(_ new: Priority) -> Bool {
    guard new != priority else { return false }
    let places = queue.placesHeld
    loader.jobs.release(places: places, at: priority)
    loader.jobs.reserve(places: places, at: new)
    priority = new
    _ = loader.setPriority(new, of: pending.keys.sorted())
    return true
  }

  public func load(_ load: LoadID, did event: LoadEvent) {
    guard let item = pending[load] else { return }
    observer.prefetch(id, item: self.item(item, load), did: event)
  }

  public func load(_ load: LoadID, ended result: Result<LoadedImage, LoadError>) {
    guard let item = pending.removeValue(forKey: load) else { return }
    queue.end(item)
    count(result, of: self.item(item, load))
    submitNext()
  }

  private func item(_ number: Int32, _ load: LoadID?) -> Item {
    Item(url: queue.url(of: number), load: load, headers: queue.headers(of: number))
  }

  /// Fails the items of an origin that is down, if they have a reserved place and are not loads yet.
  func originDown(_ origin: Origin, _ error: LoadError) {
    let items = queue.takeAll(of: origin)
    loader.jobs.release(places: items.count, at: priority)
    for number in items {
      loader.recordFailure(error, ofItem: queue.url(of: number), at: origin)
      count(.failure(error), of: item(number, nil))
    }
    endIfDone()
  }

  private func count(_ result: Result<LoadedImage, LoadError>, of item: Item) {
    switch result {
    case .success(let image) where image.cache == .miss:
      summary.downloaded += 1
      summary.bytes += image.source?.byteCount ?? image.content.byteCount
    case .success: summary.cached += 1
    case .failure(let error) where error.kind == .cancelled: summary.cancelled += 1
    case .failure(let error):
      summary.failed += 1
      if summary.errors.count < Self.maxErrors { summary.errors.append((item.url, error)) }
    }
    observer.prefetch(id, item: item, ended: result)
    reportProgress()
  }

  private func reportProgress() {
    guard progressThrottle.isDue(at: .now) || summary.done == summary.total else { return }
    observer.prefetch(id, progressed: Progress(done: summary.done, total: summary.total, bytes: summary.bytes))
  }

  private func endIfDone() {
    guard !isSubmitting, refused.isEmpty, pending.isEmpty, queue.isEmpty, loader.registry.remove(self) else { return }
    if isCancelled {
      observer.prefetch(id, ended: .failure(LoadError(.cancelled, "cancelled")))
    } else {
      observer.prefetch(id, ended: .success(summary))
    }
    loader.registry.releaseID(id)
  }
}
