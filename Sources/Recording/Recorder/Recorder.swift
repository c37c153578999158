public import Loading
public import Platform
internal import Threads

/// Records a session: what it handles, in which order and when, and what it does.
///
/// While a session is recorded, the loading thread and the transport's thread handle one cause at a time, so that the
/// journal has one order, and the time stands still meanwhile.
public final class Recorder: WorkSequencer, SessionObserver {
  private struct Current {
    var moment: Moment
    /// The values that the session has read from other threads since the last cause.
    var observed: [Bool] = []
    /// Whether the session has ended. Later causes and effects are not recorded.
    var isOver = false
  }

  /// The seed of the session's random numbers.
  public let seed: UInt64
  let journal: JournalWriter
  let files: RecordingFiles

  private let start: Instant
  /// Held while a cause is handled.
  private let turn = Locked(())
  private let current: Locked<Current>
  /// The Unix time that the disk thread sees.
  private let diskTime: Locked<Int>

  /// Creates the journal.
  ///
  /// - Parameter onFailure: called once at most, on any thread, with the reason why the recording ends before the
  ///   session.
  public init(
    in directory: RecordingDirectory, header: Header, paths: WorkerPaths,
    onFailure: @escaping @Sendable (String) -> Void
  ) throws(RecordingError) {
    seed = header.seed
    files = RecordingFiles(directory: directory.path)
    start = .now
    let now = time(nil)
    (current, diskTime) = (Locked(Current(moment: Moment(nanoseconds: 0, unixTime: now))), Locked(now))
    journal = try JournalWriter(
      files, header: header, coding: JournalCoding(start: start), paths: paths, onFailure: onFailure)
  }

  /// Lets the session handle a cause.
  public func handle<Result>(_ cause: Cause, _ body: () -> Result) -> Result {
    turn.withLock { _ in
      let moment = Moment(nanoseconds: start.duration(to: .now).nanoseconds, unixTime: time(nil))
      let isOver = current.withLock { current in
        (current.moment, current.observed) = (moment, [])
        return current.isOver
      }
      if !isOver { journal.add(.cause(cause, moment), byteCount: cause.byteCount) }
      let result = body()
      let observed = current.withLock { $0.observed }
      // Mostly nothing unusual is observed.
      if observed.contains(true) { record(.observed(observed)) }
      return result
    }
  }

  /// Records what the session does for the cause that it handles.
  func record(_ effect: Effect) {
    if !current.withLock({ $0.isOver }) { journal.add(.effect(effect), byteCount: effect.byteCount) }
  }

  /// Records a line for the host.
  public func sent(_ line: [UInt8]) { record(.sent(line)) }

  /// Records the end of the session.
  public func ended(status: Int32) {
    record(.exit(status))
    current.withLock { $0.isOver = true }
  }

  /// Writes everything that was recorded. Must be called before the process ends.
  public func finish() { journal.finish() }

  // MARK: - What the session sees

  public var now: Instant { start + .nanoseconds(current.withLock { $0.moment.nanoseconds }) }

  /// Unix seconds for the loading thread and the transport's thread.
  public var unixTime: Int { current.withLock { $0.moment.unixTime } }

  /// Unix seconds for the disk thread: the time at which its work was posted.
  public var unixTimeOfDisk: Int { diskTime.withLock { $0 } }

  public func run(for source: WorkSource, _ work: @escaping @LoadingActor @Sendable () -> Void) {
    LoadingActor.executor.run {
      // The host's work is recorded as what it is.
      if source == .host { return LoadingActor.assumeIsolated(work) }
      self.handle(.work(source.number)) { LoadingActor.assumeIsolated(work) }
    }
  }

  public func observed(_ value: Bool) -> Bool {
    current.withLock { $0.observed.append(value) }
    return value
  }

  public func dated(_ work: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    let time = unixTime
    return { [diskTime] in
      diskTime.withLock { $0 = time }
      work()
    }
  }
}

extension Recorder? {
  /// Lets the session handle a cause, and records it if there is a recorder.
  public func handle<Result>(_ cause: Cause, _ body: () -> Result) -> Result {
    if let self { self.handle(cause, body) } else { body() }
  }
}
