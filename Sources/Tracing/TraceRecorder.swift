internal import Platform
internal import Threads

/// Records a trace: takes records from any thread, and turns them into events on a thread of its own.
///
/// That thread takes what there is ten times a second, so that a record costs its own thread little more than a lock.
/// If it falls behind, records are dropped, and the trace says how many.
public final class TraceRecorder: Sendable {
  /// Makes the events of something that has happened. Runs on the thread of the trace.
  public typealias Record = @Sendable (TraceWriter) -> Void

  /// The contents of the file of a trace.
  public struct Summary: Sendable {
    public var events: Int
    /// The size of the file.
    public var bytes: Int64
    /// The number of events and records that were dropped because they came too fast or were too long.
    public var dropped: Int
    /// Whether the trace has ended before it was stopped because its file has its largest size.
    public var isFull: Bool
    /// Why the file could not be written.
    public var error: TraceError?
  }

  private struct State {
    var records: [Record] = []
    /// The records dropped since the thread last took some.
    var dropped = 0
    /// Whether no more records are taken.
    var hasEnded = false
    var isStopping = false
    var onStop: [@Sendable (Summary) -> Void] = []
    var summary: Summary?
  }

  public static let minLimit: Int64 = 1 << 20
  static let maxRecords = 20_000
  private static let interval = Duration.milliseconds(100)

  /// The path of the file.
  public let path: String
  private let state = Locked(State())
  private let maxRecords: Int

  /// Opens the file and starts the thread.
  ///
  /// - Parameters:
  ///   - limit: the largest size of the file in bytes, at least `minLimit`. The trace ends when it is reached.
  ///   - label: describes the process.
  ///   - onEnd: called on the thread of the trace, once, if the trace ends before it is stopped: the file is full or can
  ///     no longer be written. The argument is the reason.
  public convenience init(
    path: String, limit: Int64, label: String, onEnd: @escaping @Sendable (String) -> Void
  ) throws(TraceError) {
    try self.init(path: path, limit: limit, label: label, maxRecords: Self.maxRecords, onEnd: onEnd)
  }

  init(
    path: String, limit: Int64, label: String, maxRecords: Int, onEnd: @escaping @Sendable (String) -> Void
  ) throws(TraceError) {
    self.path = path
    self.maxRecords = maxRecords
    let start = Instant.now
    let writer = try TraceWriter(file: TraceFile(path), limit: limit, start: start, label: label)
    // Nonisolated: the thread below is the only user of the writer from here on.
    nonisolated(unsafe) let handedOver = writer
    startThread(name: "trace") { [state] in Self.run(handedOver, state, wakeAt: maxRecords / 2, onEnd) }
  }

  /// Adds a record. May be called on any thread.
  public func add(_ record: @escaping Record) {
    let count = state.withLock { state -> Int in
      guard !state.hasEnded else { return 0 }
      guard state.records.count < maxRecords, !state.isStopping else {
        state.dropped += 1
        return 0
      }
      state.records.append(record)
      return state.records.count
    }
    if count == 1 || count == maxRecords / 2 { state.notify() }
  }

  /// Writes all records so far, closes the file, and ends the thread.
  ///
  /// - Parameter completion: called on the thread of the trace.
  public func stop(then completion: @escaping @Sendable (Summary) -> Void) {
    let summary = state.withLock { state in
      state.isStopping = true
      if state.summary == nil { state.onStop.append(completion) }
      return state.summary
    }
    state.notify()
    if let summary { completion(summary) }
  }

  /// As `stop`, but blocks until the file is complete.
  @discardableResult
  public func stop() -> Summary {
    stop { _ in }
    return state.wait { $0.summary }!
  }

  private static func run(
    _ writer: TraceWriter, _ state: Locked<State>, wakeAt count: Int, _ onEnd: (String) -> Void
  ) {
    var dropped = 0
    var hasEnded = false
    while true {
      _ = state.wait { $0.records.isEmpty && !$0.isStopping ? nil : () }
      _ = state.wait(timeout: interval) { $0.isStopping || $0.records.count >= count ? () : nil }
      let (records, lost, isStopping) = state.withLock { state in
        defer { (state.records, state.dropped) = ([], 0) }
        return (state.records, state.dropped, state.isStopping)
      }
      dropped += lost
      if !hasEnded {
        for record in records { record(writer) }
        if lost > 0 { writer.lost(lost, at: .now) }
        writer.flush()
      }
      if let reason = writer.reasonOfEnd, !hasEnded {
        hasEnded = true
        state.withLock { $0.hasEnded = true }
        onEnd(reason)
      }
      guard !isStopping else { break }
    }
    writer.close()
    let summary = Summary(
      events: writer.eventCount, bytes: writer.byteCount, dropped: dropped + writer.refusedCount,
      isFull: writer.isFull, error: writer.error)
    let waiting = state.withLock { state in
      state.summary = summary
      return state.onStop
    }
    state.notify()
    for completion in waiting { completion(summary) }
  }
}
