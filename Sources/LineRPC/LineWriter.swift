internal import Platform
internal import Threads

/// A thread that writes to a descriptor, and the queue of lines to write.
///
/// Nobody else may write to the descriptor. A few lines are written by the caller of `flush`, while the thread sleeps:
/// so a host that sends one request after the other waits for one thread fewer.
///
/// Lines are written in the order of `send`, many in one write(2). If the kernel accepts a write completely, it has
/// whole lines only. While the output is open, no line is lost, however slow the reader is; after a failure all lines
/// are discarded. The writer notices that the reader is gone even if there is nothing to write. The process must ignore
/// SIGPIPE.
///
/// All methods may be called on any thread. The closures are called on the writer's own thread, with no lock held.
public final class LineWriter: Sendable {
  /// The backlog at which congestion begins and at which it ends, in bytes.
  public struct Marks: Sendable {
    public var high: Int
    public var low: Int

    public init(high: Int, low: Int) {
      precondition(low <= high)
      self.high = high
      self.low = low
    }
  }

  private struct State {
    var queue = OutputQueue()
    /// Bytes that were dequeued and are not written yet.
    var dequeued = 0
    /// Whether a caller of `flush` writes them. The thread then waits for it.
    var isCallerWriting = false
    var isAsleep = false
    var isCongested = false
    var isFinishing = false
    var hasEnded = false
    var hasFailed = false

    var backlog: Int { queue.count + dequeued }
  }

  /// Backlog, in bytes, from which deferred lines are written without `flush`.
  private static let deferralLimit = 1 << 16

  private let descriptor: Int32
  private let kind: OutputKind
  private let marks: Marks
  private let onRelief: @Sendable () -> Void
  private let onClosed: @Sendable (Int32) -> Void
  private let state = Locked(State())
  private let wakeUp = WakeupPipe.required()

  /// Starts the thread, which keeps the writer alive until `finish` or a failure.
  ///
  /// - Parameters:
  ///   - descriptor: remains the caller's, and must stay open until then. It may be non-blocking.
  ///   - onRelief: called when the backlog has fallen to the low mark after it had risen to the high mark.
  ///   - onClosed: called once at most, when the reader is gone or writing failed, with the errno (if the reader is
  ///     gone, `EPIPE`, or `ECONNRESET` on a socket).
  public init(
    descriptor: Int32,
    marks: Marks = Marks(high: 1 << 20, low: 1 << 18),
    onRelief: @escaping @Sendable () -> Void = {},
    onClosed: @escaping @Sendable (Int32) -> Void
  ) {
    self.descriptor = descriptor
    kind = OutputKind(of: descriptor)
    self.marks = marks
    self.onRelief = onRelief
    self.onClosed = onClosed
    startThread(name: "line writer") { [self] in run() }
  }

  // MARK: Sending

  /// Queues one line or more; each must end in LF.
  ///
  /// - Parameters:
  ///   - subject: the request that the line is about. No replaceable line about it will overtake this line.
  ///   - deferred: whether the line may wait for the next `flush` or undeferred line, because more follows soon.
  public func send(_ line: [UInt8], about subject: RequestToken? = nil, deferred: Bool = false) {
    add(deferred: deferred) { $0.append(line, about: subject) }
  }

  /// Queues a line that replaces the last replaceable line about the same request, if that is still queued and no other
  /// line about the request was sent after it.
  public func sendReplaceable(_ line: [UInt8], about subject: RequestToken, deferred: Bool = false) {
    add(deferred: deferred) { $0.appendReplaceable(line, about: subject) }
  }

  /// Writes the deferred lines, or makes the thread write them if there are many or if the output has no room.
  public func flush() {
    guard state.withLock({ $0.isAsleep && !$0.queue.isEmpty }) else { return }
    guard kind.hasRoom(descriptor), let lines = dequeueForCaller() else { return wakeForQueue() }
    let written = lines.withUnsafeBytes { kind.writeAtOnce(descriptor, $0) }
    callerWrote(written, of: lines)
  }

  /// The queued lines, if they are few and the thread sleeps. During a congestion, the thread writes: it reports the
  /// relief.
  private func dequeueForCaller() -> [UInt8]? {
    state.withLock { state in
      guard state.isAsleep, !state.queue.isEmpty, state.queue.count <= OutputKind.room, !state.isCongested else {
        return nil
      }
      let lines = state.queue.dequeue()
      state.dequeued = lines.count
      (state.isCallerWriting, state.isAsleep) = (true, false)
      return lines
    }
  }

  /// Leaves to the thread what was not written, what was queued meanwhile, and a failure, which it meets again.
  private func callerWrote(_ count: Int, of lines: [UInt8]) {
    let wakes = state.withLock { state in
      state.isCallerWriting = false
      if state.hasEnded { return false }
      state.dequeued = 0
      if count < lines.count { state.queue.prepend(Array(lines[count...])) }
      state.isAsleep = state.queue.isEmpty && !state.isFinishing
      return !state.isAsleep
    }
    state.notify()
    if wakes { wakeUp.wake() }
  }

  private func wakeForQueue() {
    let wakes = state.withLock { state in
      defer { if !state.queue.isEmpty { state.isAsleep = false } }
      return state.isAsleep && !state.queue.isEmpty
    }
    if wakes { wakeUp.wake() }
  }

  /// Blocks until all lines are written or the output has failed, then ends the thread. Later lines are discarded.
  ///
  /// Must not be called in `onRelief`, since the thread waits for that.
  ///
  /// - Returns: whether every line was written.
  @discardableResult
  public func finish() -> Bool {
    state.withLock { $0.isFinishing = true }
    wakeUp.wake()
    return state.wait { $0.hasEnded ? !$0.hasFailed : nil } ?? false
  }

  private func add(deferred: Bool, _ body: (inout OutputQueue) -> Void) {
    let wakes = state.withLock { state in
      if state.hasEnded { return false }
      body(&state.queue)
      if state.backlog >= marks.high { state.isCongested = true }
      guard state.isAsleep, !deferred || state.queue.count >= Self.deferralLimit else { return false }
      state.isAsleep = false
      return true
    }
    if wakes { wakeUp.wake() }
  }

  // MARK: Back-pressure

  /// Bytes that were sent and are not written yet.
  public var backlog: Int { state.withLock { $0.backlog } }

  /// Whether the backlog has risen to the high mark and not yet fallen to the low one. True is always followed by
  /// `onRelief` or `onClosed`.
  public var isCongested: Bool { state.withLock { $0.isCongested } }

  /// Blocks until the backlog is below `limit` (at least 1) or the output is closed.
  public func waitForRoom(below limit: Int) {
    flush()
    _ = state.wait { $0.backlog < limit || $0.hasEnded ? () : nil }
  }

  // MARK: The thread

  private enum Task {
    case write([UInt8])
    case sleep
    case end
  }

  private func run() {
    while true {
      switch nextTask() {
      case .write(let lines):
        if let number = write(lines) { return close(number) }
      case .sleep:
        if let number = wakeUp.sleep(watching: descriptor) { return close(number) }
      case .end:
        state.withLock { $0.hasEnded = true }
        return state.notify()
      }
    }
  }

  private func nextTask() -> Task {
    state.withLock { state in
      // The caller wakes the thread if there is something left to do.
      if state.isCallerWriting { return .sleep }
      let lines = state.queue.dequeue()
      if lines.isEmpty {
        if state.isFinishing { return .end }
        state.isAsleep = true
        return .sleep
      }
      state.isAsleep = false
      state.dequeued = lines.count
      return .write(lines)
    }
  }

  /// Returns the errno of a failure; nil if all was written.
  private func write(_ lines: [UInt8]) -> Int32? {
    lines.withUnsafeBytes { lines in
      var rest = lines
      while !rest.isEmpty {
        switch writeOutput(descriptor, rest) {
        case .success(let count):
          rest = UnsafeRawBufferPointer(rebasing: rest[count...])
          wrote(count)
        case .failure(let error):
          return error.number
        }
      }
      return nil
    }
  }

  private func wrote(_ count: Int) {
    let isRelieved = state.withLock { state in
      state.dequeued -= count
      guard state.isCongested, state.backlog <= marks.low else { return false }
      state.isCongested = false
      return true
    }
    state.notify()
    if isRelieved { onRelief() }
  }

  private func close(_ number: Int32) {
    state.withLock { state in
      state.queue.removeAll()
      state.dequeued = 0
      state.isCongested = false
      state.hasEnded = true
      state.hasFailed = true
    }
    state.notify()
    onClosed(number)
  }
}
