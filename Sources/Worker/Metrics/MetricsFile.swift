internal import ImageStore
internal import Loading
internal import Platform
internal import Threads

/// The file of `--metrics-file`: replaced as a whole every ten seconds and at the end, on a thread of its own, so that
/// a slow file system delays nothing else.
final class MetricsFile: Sendable {
  private static let interval = Duration.seconds(10)
  /// The maximum time for which the end of the worker waits for the last file.
  private static let patience = Duration.seconds(2)

  typealias Collect = @Sendable (@escaping @Sendable (WorkerFigures) -> Void) -> Void

  private struct State {
    var nextTime = Instant.now
    /// Whether figures are being collected or written.
    var isBusy = false
    var failures = RepeatedFailure()
    var isFinishing = false
    var hasEnded = false
  }

  private let path: String
  private let log: Log
  private let executor = ThreadExecutor(name: "metrics")
  private let state = Locked(State())

  /// Writes the first file, which contains no figures yet.
  ///
  /// - Parameter path: absolute.
  /// - Throws: if the file cannot be written.
  init(path: String, log: Log) throws(StoreError) {
    (self.path, self.log) = (path, log)
    try write(WorkerFigures.families(startTime: WallClock.now))
  }

  /// Begins to write.
  ///
  /// - Parameter collect: called on the thread of this file; may call its parameter on any thread.
  func start(collect: @escaping Collect) {
    executor.setAfterBatch { [self] in writeIfDue(collect) }
  }

  private func writeIfDue(_ collect: Collect) -> Instant? {
    let now = Instant.now
    let (isDue, next) = state.withLock { state -> (Bool, Instant?) in
      if state.isFinishing || state.isBusy { return (false, nil) }
      guard state.nextTime <= now else { return (false, state.nextTime) }
      state.isBusy = true
      state.nextTime = now.advanced(by: Self.interval)
      return (true, nil)
    }
    if isDue {
      collect { [self] figures in
        executor.run { [self] in
          update(figures.families(.current()))
          state.withLock { $0.isBusy = false }
        }
      }
    }
    return next
  }

  /// Writes the last file. Waits for it, but only for a short time if the disk or the file system does not respond.
  func finish(collect: Collect) {
    state.withLock { $0.isFinishing = true }
    collect { [self] figures in
      executor.run { [self] in
        update(figures.families(.current(), isRunning: false))
        state.withLock { $0.hasEnded = true }
        state.notify()
      }
    }
    _ = state.wait(timeout: Self.patience) { $0.hasEnded ? () : nil }
  }

  /// Writes the file. Logs the first of several failures, and the end of these.
  private func update(_ families: [MetricFamily]) {
    let failure: StoreError?
    do throws(StoreError) {
      try write(families)
      failure = nil
    } catch {
      failure = error
    }
    switch state.withLock({ $0.failures.note(failure: failure != nil) }) {
    case .began: log.write(.metricsUnwritable(path, failure!.message))
    case .ended: log.write(.metricsWritten(path))
    case nil: break
    }
  }

  /// The label `worker` is the name of the file without its extension: it tells the workers of a machine apart.
  private func write(_ families: [MetricFamily]) throws(StoreError) {
    let name = path.split(separator: "/").last ?? ""
    let worker = name.lastIndex(of: ".").map { name[..<$0] } ?? name
    let text = MetricsText.prometheus.text(of: families, label: ("worker", String(worker)))
    try save(copyOf: .bytes(Array(text.utf8)), to: path, mode: 0o644)
  }
}

/// Something that is tried again and again, and whose failure is reported once. A pure value.
struct RepeatedFailure {
  enum Change {
    case began, ended
  }

  private var isFailing = false

  /// Records an attempt. Returns the change that must be reported, if any.
  mutating func note(failure: Bool) -> Change? {
    guard failure != isFailing else { return nil }
    isFailing = failure
    return failure ? .began : .ended
  }
}
