/// Hears what becomes of a prefetch. Called on the loading thread; `ended` comes once, at the end.
@LoadingActor
public protocol PrefetchObserver: AnyObject {
  func prefetch(_ id: LoadID, progressed progress: Prefetch.Progress)
  func prefetch(_ id: LoadID, item url: String, ended result: Result<LoadedImage, LoadError>)
  func prefetch(_ id: LoadID, ended result: Result<Prefetch.Summary, LoadError>)
}

/// Many loads with one answer: images that somebody may want soon are brought into the cache.
@LoadingActor
public final class Prefetch: LoadObserver {
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
    /// Of the images downloaded.
    public var bytes: Int64 = 0
    /// The first `mostErrors`.
    public var errors: [(url: String, kind: LoadError.Kind)] = []

    var done: Int { downloaded + cached + failed + cancelled }
  }

  static let mostErrors = 100
  private static let progressInterval = Duration.milliseconds(125)

  let id: LoadID
  let group: String?
  private let loader: Loader
  private let observer: any PrefetchObserver
  private var summary = Summary()
  private var pending: [LoadID: String] = [:]
  private var nextProgress = ContinuousClock.now
  private var isStarting = true
  private var isCancelled = false

  init(id: LoadID, group: String?, loader: Loader, observer: any PrefetchObserver) {
    self.id = id
    self.group = group
    self.loader = loader
    self.observer = observer
  }

  func start(_ requests: [LoadRequest]) {
    summary.total = requests.count
    for request in requests where !isCancelled {
      let item = loader.makeID()
      pending[item] = request.url
      loader.submit(request, as: item, for: self)
    }
    isStarting = false
    endIfDone()
  }

  func cancel() {
    isCancelled = true
    for item in items { loader.cancel(item) }
    endIfDone()
  }

  /// The loads that it waits for, in the order of their coming.
  var items: [LoadID] { pending.keys.sorted() }

  public func load(_ item: LoadID, did event: LoadEvent) {}

  public func load(_ item: LoadID, ended result: Result<LoadedImage, LoadError>) {
    guard let url = pending.removeValue(forKey: item) else { return }
    switch result {
    case .success(let image) where image.cache == .miss:
      summary.downloaded += 1
      summary.bytes += image.byteCount
    case .success:
      summary.cached += 1
    case .failure(let error) where error.kind == .cancelled:
      summary.cancelled += 1
    case .failure(let error):
      summary.failed += 1
      if summary.errors.count < Self.mostErrors { summary.errors.append((url, error.kind)) }
    }
    observer.prefetch(id, item: url, ended: result)
    tellProgress()
    endIfDone()
  }

  private func tellProgress() {
    let now = ContinuousClock.now
    guard now >= nextProgress || summary.done == summary.total else { return }
    nextProgress = now.advanced(by: Self.progressInterval)
    observer.prefetch(id, progressed: Progress(done: summary.done, total: summary.total, bytes: summary.bytes))
  }

  private func endIfDone() {
    guard !isStarting, pending.isEmpty, loader.prefetches.removeValue(forKey: id) != nil else { return }
    loader.index.remove(id, LoadIndex.Labels(group: group))
    if isCancelled {
      observer.prefetch(id, ended: .failure(LoadError(.cancelled, "cancelled")))
    } else {
      observer.prefetch(id, ended: .success(summary))
    }
    loader.retire(id)
  }
}
