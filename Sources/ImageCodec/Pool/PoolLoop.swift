internal import Platform
internal import Threads

/// The pool's thread: takes commands from the mailbox, starts and watches processes, and assigns tasks.
///
/// It sleeps in poll(2) until it is woken, a decoder sends data or ends, or a timer expires.
final class PoolLoop {
  struct Pending {
    let task: DecodeTask
    let priority: Int
    let then: @Sendable (Result<Decoded, DecodeError>, Instant?) -> Void
    var isRetried = false
    /// The libraries that a decoder has asked for.
    var needed: DecoderLibraries?
    /// The time at which a decoder first got the task.
    var startedAt: Instant?
  }

  struct Unreaped {
    let parent: pid_t
    /// The time at which it is killed, if it has not ended by itself.
    var killAt: Instant?
    /// The failure to report when its status is known.
    let failure: DecoderFailure?
  }

  let mailbox: PoolMailbox
  var settings: DecoderSettings
  /// The pipe by which the mailbox wakes the loop.
  private let wakeUp: WakeupPipe
  var queue: DecodeQueue
  var pending: [DecodeTicket: Pending] = [:]
  var processes: [DecoderProcess] = []
  /// Parents that end but are not yet reaped.
  var unreaped: [Unreaped] = []
  /// The formats, as announced by a decoder with all libraries.
  var formats: CodecFormats?
  var formatWaiters: [@Sendable (CodecFormats) -> Void] = []
  var statistics = DecoderStatistics()
  var observer: DecoderPool.Observer?
  /// The earliest time of the next start, set after a failed start.
  var nextLaunch: Instant?
  /// The time at which a decode that waits for those of other pools tries to begin again.
  var nextTry: Instant?
  /// The number of decoders that work, as the other pools know it.
  var sharedCount = 0
  /// The number of consecutive failed starts.
  var failedStarts: [DecoderLibraries: Int] = [:]
  private var isShuttingDown = false
  var now = Instant.now

  /// The time in which a parent ends after the worker has closed its socket; it is killed then.
  static let maxEndTime = Duration.seconds(1)
  private static let reapingPause = Duration.milliseconds(5)
  static let launchPause = Duration.seconds(1)
  /// The pause between two tries of a decode that waits for those of other pools, which do not tell their ends.
  static let sharingPause = Duration.milliseconds(10)
  /// The number of consecutive failed starts after which the decoder is unavailable. A single start may fail for lack
  /// of memory, for example.
  static let maxFailedStarts = 3

  init(mailbox: PoolMailbox, settings: DecoderSettings, observer: DecoderPool.Observer?, wakeUp: WakeupPipe) {
    (self.mailbox, self.settings, self.observer, self.wakeUp) = (mailbox, settings, observer, wakeUp)
    queue = DecodeQueue(budget: settings.pixelBudget)
  }

  /// Runs one iteration. False after `shutDown`, when nothing is left.
  func turn() -> Bool {
    now = .now
    for command in mailbox.takeCommands() { perform(command) }
    if isShuttingDown {
      end()
      return false
    }
    dispatch()
    terminateOverdue()
    // Expired tasks may have freed capacity.
    dispatch()
    recordWorking()
    reap()
    publish()
    sleep()
    return true
  }

  // MARK: Commands

  private func perform(_ command: PoolMailbox.Command) {
    switch command {
    case .submit(let ticket, let task, let priority, let then): submit(ticket, task, priority, then)
    case .reprioritize(let ticket, let priority): queue.reprioritize(ticket, to: priority)
    case .cancel(let ticket): cancel(ticket)
    case .formats(let then):
      if let formats { then(formats) } else { formatWaiters.append(then) }
    case .configure(let new):
      settings = new
      queue.budget = new.pixelBudget
    case .observe(let new): observer = new
    case .shutDown: isShuttingDown = true
    }
  }

  private func submit(
    _ ticket: DecodeTicket, _ task: DecodeTask, _ priority: Int,
    _ then: @escaping @Sendable (Result<Decoded, DecodeError>, Instant?) -> Void
  ) {
    pending[ticket] = Pending(task: task, priority: priority, then: then)
    if let error = task.refusal(formats: formats) {
      finish(ticket, .failure(error))
    } else {
      queue.add(ticket, priority: priority, pixels: task.pixels)
    }
  }

  private func cancel(_ ticket: DecodeTicket) {
    guard pending[ticket] != nil else { return }
    if !queue.remove(ticket) {
      for process in processes {
        guard case .busy(let assignment) = process.activity, assignment.ticket == ticket else { continue }
        assignment.files.discardOutput()
        process.killChild(.cancelled, now: now)
      }
    }
    finish(ticket, .failure(.cancelled))
  }

  /// Answers a task that no longer runs, and frees its capacity.
  func finish(_ ticket: DecodeTicket, _ result: Result<Decoded, DecodeError>) {
    queue.finish(ticket)
    answer(ticket, result)
  }

  func answer(_ ticket: DecodeTicket, _ result: Result<Decoded, DecodeError>) {
    guard let pending = pending.removeValue(forKey: ticket) else { return }
    switch result {
    case .success: statistics.decoded += 1
    case .failure(.cancelled): break
    case .failure: statistics.failed += 1
    }
    publish()
    pending.then(result, pending.startedAt)
  }

  // MARK: Time

  private func terminateOverdue() {
    for process in processes {
      guard let due = process.due(settings), due <= now else { continue }
      switch process.activity {
      case .idle: terminate(process)
      case .starting:
        // Another start would take as long.
        failedStarts[process.libraries] = Self.maxFailedStarts
        handleLoss(of: process, .timedOut(.elapsedTime))
      case .busy(let assignment) where assignment.kill == nil: checkLimits(assignment, of: process)
      case .busy: handleLoss(of: process, .timedOut(.elapsedTime))
      }
    }
  }

  private func checkLimits(_ assignment: DecoderProcess.Assignment, of process: DecoderProcess) {
    switch assignment.limits.check(at: now, used: process.processorTime) {
    case .within(let next): process.check(at: next)
    case .exceeded(let timeout):
      process.killChild(.timedOut(timeout.limit), now: now)
      assignment.files.discardOutput()
      statistics.timedOut += 1
      finish(assignment.ticket, .failure(.timedOut(timeout)))
    }
  }

  private func sleep() {
    var next = processes.compactMap { $0.due(settings) }.min()
    if let nextLaunch, queue.waitingCount > 0 || !formatWaiters.isEmpty { next = min(next ?? nextLaunch, nextLaunch) }
    if let nextTry { next = min(next ?? nextTry, nextTry) }
    if !unreaped.isEmpty { next = min(next ?? .now + .seconds(1), .now + Self.reapingPause) }
    var descriptors = [pollfd(fd: wakeUp.descriptor, events: Int16(POLLIN), revents: 0)]
    let listened = processes.flatMap { process in
      [process.socket, process.childSocket].compactMap { $0 }.map { (process, $0) }
    }
    descriptors += listened.map { pollfd(fd: $1.descriptor, events: Int16(POLLIN), revents: 0) }
    let ready = poll(&descriptors, nfds_t(descriptors.count), next?.pollTimeout ?? -1)
    guard ready > 0 else { return }
    now = .now
    if descriptors[0].revents != 0 { wakeUp.reset() }
    for ((process, socket), descriptor) in zip(listened, descriptors.dropFirst()) where descriptor.revents != 0 {
      if socket === process.socket { listen(to: process) } else { listenToChild(of: process) }
    }
  }

  /// Reaps the parents that have ended, and reports those that failed.
  private func reap() {
    unreaped = unreaped.filter { ending in
      if let killAt = ending.killAt, killAt <= now { kill(ending.parent, SIGKILL) }
      guard case .ended(let status) = DecoderProcess.reap(ending.parent) else { return true }
      if var failure = ending.failure {
        failure.status = status
        mailbox.onFailure(failure)
      }
      return false
    }
  }

  func publish() {
    statistics.running = processes.count
    statistics.busy = processes.count(where: \.isBusy)
    statistics.waiting = queue.waitingCount
    mailbox.publish(statistics)
  }

  private func end() {
    for process in processes { terminate(process) }
    recordWorking()
    for ticket in pending.keys.sorted(by: { $0.number < $1.number }) { answer(ticket, .failure(.cancelled)) }
    tellFormatWaiters(CodecFormats())
    while !unreaped.isEmpty {
      reap()
      poll(nil, 0, (now + Self.reapingPause).pollTimeout)
      now = .now
    }
    publish()
  }
}
