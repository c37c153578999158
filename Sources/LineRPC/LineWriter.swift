internal import Platform
internal import Threads

/// The thread that alone writes to a descriptor, and the lines that wait for it.
///
/// Lines go out in the order of `send`, many in one write(2), and only whole lines in a write that the kernel takes
/// whole. None is lost while the output is open, however slow its reader; after a failure all are discarded.
/// A reader that goes away is noticed even while there is nothing to write. SIGPIPE never reaches the process from
/// here.
///
/// All methods may be called from any thread. The closures are called on the writer's own thread, with no lock held.
public final class LineWriter: Sendable {
  /// Where congestion begins and ends, in bytes of backlog.
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
    /// Bytes that were taken from the queue and have yet to be written.
    var taken = 0
    var isAsleep = false
    var isCongested = false
    var isFinishing = false
    var hasEnded = false
    var hasFailed = false

    var backlog: Int { queue.count + taken }
  }

  /// Deferred lines wait for company up to this many bytes.
  private static let worthWriting = 1 << 16

  private let descriptor: Int32
  private let marks: Marks
  private let onRelief: @Sendable () -> Void
  private let onClosed: @Sendable (Int32) -> Void
  private let state = Locked(State())
  private let wakeUp = WakeupPipe.required()

  /// Starts the thread, which keeps the writer alive until `finish` or a failure.
  ///
  /// - Parameters:
  ///   - descriptor: stays the caller's and has to stay open until then. It may be non-blocking.
  ///   - onRelief: the backlog fell to the low mark after it had risen to the high mark.
  ///   - onClosed: nobody reads any more or writing failed, with the errno (for a reader gone `EPIPE`, or
  ///     `ECONNRESET` on a socket). At most once.
  public init(
    descriptor: Int32,
    marks: Marks = Marks(high: 1 << 20, low: 1 << 18),
    onRelief: @escaping @Sendable () -> Void = {},
    onClosed: @escaping @Sendable (Int32) -> Void
  ) {
    self.descriptor = descriptor
    self.marks = marks
    self.onRelief = onRelief
    self.onClosed = onClosed
    startThread(name: "line writer") { [self] in run() }
  }

  // MARK: Sending

  /// Queues a line, or several; each must end in LF.
  ///
  /// - Parameters:
  ///   - subject: the request that it is about: no replaceable line about it will overtake this one.
  ///   - deferred: more follows soon, so that this need not be written before the next `flush` or undeferred line.
  public func send(_ line: [UInt8], about subject: RequestToken? = nil, deferred: Bool = false) {
    add(deferred: deferred) { $0.append(line, about: subject) }
  }

  /// Queues a line that takes the place of the last replaceable line about the same request if that still waits, unless
  /// another line about it was sent meanwhile.
  public func sendReplaceable(_ line: [UInt8], about subject: RequestToken, deferred: Bool = false) {
    add(deferred: deferred) { $0.appendReplaceable(line, about: subject) }
  }

  /// Lets the deferred lines go.
  public func flush() {
    let wakes = state.withLock { state in
      defer { if !state.queue.isEmpty { state.isAsleep = false } }
      return state.isAsleep && !state.queue.isEmpty
    }
    if wakes { wakeUp.wake() }
  }

  /// Blocks until all lines are written or the output has failed, and ends the thread. Later lines are discarded.
  ///
  /// Not to be called from `onRelief`, which the thread waits for.
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
      guard state.isAsleep, !deferred || state.queue.count >= Self.worthWriting else { return false }
      state.isAsleep = false
      return true
    }
    if wakes { wakeUp.wake() }
  }

  // MARK: Back-pressure

  /// Bytes that were sent and are not written yet.
  public var backlog: Int { state.withLock { $0.backlog } }

  /// Whether the backlog rose to the high mark and has not fallen to the low one since. True is always followed by
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
    blockPipeSignal()
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
      let lines = state.queue.take()
      if lines.isEmpty {
        if state.isFinishing { return .end }
        state.isAsleep = true
        return .sleep
      }
      state.isAsleep = false
      state.taken = lines.count
      return .write(lines)
    }
  }

  /// Nil, or the errno that put an end to it.
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
      state.taken -= count
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
      state.taken = 0
      state.isCongested = false
      state.hasEnded = true
      state.hasFailed = true
    }
    state.notify()
    onClosed(number)
  }

  /// A write to a pipe without a reader raises SIGPIPE in the thread that writes; blocked there, it does no harm.
  private func blockPipeSignal() {
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
  }
}
