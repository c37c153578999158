internal import Platform

/// Starts processes, assigns tasks to them, and handles their results and their ends.
extension PoolLoop {
  func dispatch() {
    nextTry = nil
    if !formatWaiters.isEmpty, !hasProcess(with: .all) { _ = launch(with: .all) }
    while let ticket = queue.nextThatFits(), processes.count(where: \.isBusy) < maxCount {
      guard let process = readyProcess(for: ticket) else { break }
      guard mayWork() else { return }
      _ = queue.dequeue()
      assign(ticket, to: process)
    }
    guard let next = queue.nextThatFits().map({ libraries(for: $0) }) else { return }
    let starting = processes.count { ($0.isStarting || $0.isRetiring) && $0.libraries.include(next) }
    var wanted = queue.waitingCount - starting
    // Beyond the maximum, a decoder of the other kind starts before its turn.
    while wanted > 0, working >= maxCount || mayWork(), launch(with: next) != nil { wanted -= 1 }
  }

  /// The number of decoders that decode or start.
  private var working: Int { processes.count { $0.isBusy || $0.isStarting } }

  /// Whether one more decoder may work, next to those of other pools. If not, the loop tries again soon.
  private func mayWork() -> Bool {
    guard let sharedDecodes = mailbox.sharedDecodes else { return true }
    sharedCount = working + 1
    if sharedDecodes.begin(sharedCount, limit: maxCount) { return true }
    sharedCount -= 1
    nextTry = now.advanced(by: Self.sharingPause)
    return false
  }

  /// Tells the other pools how many decoders work.
  func recordWorking() {
    guard let sharedDecodes = mailbox.sharedDecodes, sharedCount != working else { return }
    sharedCount = working
    sharedDecodes.record(sharedCount)
  }

  private var maxCount: Int { max(1, settings.count) }

  /// An idle process for the task. Nil if there is none, or if it must first end a child of another isolation.
  private func readyProcess(for ticket: DecodeTicket) -> DecoderProcess? {
    guard let task = pending[ticket]?.task else { return processes.first(where: \.isIdle) }
    let isolation = settings.isolation(of: task)
    let idle = processes.filter { $0.isIdle && $0.libraries.include(libraries(for: ticket)) }
    let ready = idle.filter { $0.isReady(for: isolation) }
    if let process = ready.first(where: \.hasIdleChild) ?? ready.first { return process }
    idle.first?.retireChild()
    return nil
  }

  private func libraries(for ticket: DecodeTicket) -> DecoderLibraries {
    guard let pending = pending[ticket] else { return .common }
    return pending.needed ?? pending.task.libraries
  }

  /// Starts a process, which replaces an idle one that lacks libraries if the maximum is reached. Nil if the start
  /// fails; the tasks that wait for it then fail, unless there are other processes.
  private func launch(with libraries: DecoderLibraries) -> DecoderProcess? {
    if let nextLaunch, now < nextLaunch { return nil }
    nextLaunch = nil
    let alike = processes.filter { $0.libraries.share(limitOf: libraries) }
    if alike.count >= maxCount {
      guard let idle = alike.first(where: { $0.isIdle && !$0.libraries.include(libraries) }) else { return nil }
      terminate(idle)
    }
    do throws(DecodeError) {
      let executable = if let own = settings.executable { own } else { try DecoderExecutable.find(for: libraries) }
      let number = (1...).first { number in !processes.contains { $0.number == number } }!
      let process = try DecoderProcess(
        number: number, executable: executable, settings: settings, libraries: libraries, now: now)
      processes.append(process)
      return process
    } catch {
      if !hasProcess(with: libraries) { failWaiting(error, with: libraries) }
      return nil
    }
  }

  private func hasProcess(with libraries: DecoderLibraries) -> Bool {
    processes.contains { $0.libraries.include(libraries) }
  }

  /// Fails all tasks that wait for a process with these or more libraries.
  private func failWaiting(_ error: DecodeError, with libraries: DecoderLibraries) {
    for ticket in queue.waitingTickets where self.libraries(for: ticket).include(libraries) {
      if queue.remove(ticket) { answer(ticket, .failure(error)) }
    }
    if libraries != .plain { tellFormatWaiters(CodecFormats()) }
  }

  func tellFormatWaiters(_ formats: CodecFormats) {
    let waiters = formatWaiters
    formatWaiters = []
    for then in waiters { then(formats) }
  }

  private func assign(_ ticket: DecodeTicket, to process: DecoderProcess) {
    guard let task = pending[ticket]?.task else { return queue.finish(ticket) }
    if pending[ticket]?.startedAt == nil { pending[ticket]?.startedAt = now }
    do throws(DecodeError) {
      // The formats may have become known after the task was queued.
      if let error = task.refusal(formats: formats) { throw error }
      let limits = DecodeLimits(
        start: now, usedBefore: process.processorTime ?? .zero, processorTime: settings.timeout,
        elapsedTime: settings.elapsedLimit, processors: Processors.count)
      let assignment = DecoderProcess.Assignment(
        ticket: ticket, task: task, isolation: settings.isolation(of: task), files: try TaskFiles(task), limits: limits,
        due: now)
      if !process.start(assignment) { handleLoss(of: process, .ended) }
    } catch {
      process.activity = .idle(since: now)
      finish(ticket, .failure(error))
    }
  }

  func listen(to process: DecoderProcess) {
    switch process.socket.receive() {
    case .nothing: break
    case .closed: handleLoss(of: process, .ended)
    case .invalid: handleLoss(of: process, .invalidReply)
    case .reply(let reply):
      switch (process.activity, reply) {
      case (.starting, .ready(let formats, let sandbox)): handleReady(process, formats, sandbox)
      case (.busy, .started(let child)), (.idle, .started(let child)): process.childHasStarted(child)
      case (.busy, .ended(let child, let status)): handleEnd(of: child, status, process)
      // A child that waited for another image.
      case (.idle, .ended): process.forgetChild()
      default: handleLoss(of: process, .invalidReply)
      }
      if process.socket.hasMore { listen(to: process) }
    }
  }

  private func handleReady(_ process: DecoderProcess, _ formats: CodecFormats, _ sandbox: [String]) {
    process.activity = .idle(since: now)
    _ = process.takeMessage()
    failedStarts[process.libraries] = 0
    statistics.sandbox = sandbox
    publish()
    if process.libraries == .all {
      self.formats = formats
      tellFormatWaiters(formats)
    }
  }

  func listenToChild(of process: DecoderProcess) {
    guard let socket = process.childSocket, case .busy(var assignment) = process.activity else { return }
    switch socket.receive() {
    case .nothing: break
    // The parent tells the reason.
    case .closed: process.childHasClosed()
    case .invalid, .reply(.ready), .reply(.started), .reply(.ended): process.killChild(.invalidReply, now: now)
    case .reply where socket.hasMore: process.killChild(.invalidReply, now: now)
    // Earlier images may have left too little memory; a new child has all that is allowed.
    case .reply(.failed(.outOfMemory)) where process.childIsUsed: process.killChild(.memory, now: now)
    case .reply(let reply):
      assignment.reply = reply
      process.activity = .busy(assignment)
      if !process.childEndsAfterTask, !accept(reply, to: assignment, of: process) {
        process.killChild(.invalidReply, now: now)
      }
    }
  }

  /// Handles the end of the child of a busy decoder.
  private func handleEnd(of child: pid_t, _ status: Int32, _ process: DecoderProcess) {
    // The answer may have come after the last look.
    listenToChild(of: process)
    let childWasUsed = process.childIsUsed
    process.forgetChild()
    guard case .busy(let assignment) = process.activity else { return }
    func report(_ cause: DecoderFailure.Cause) {
      mailbox.onFailure(DecoderFailure(cause, of: child, decoding: assignment.task.header.format, status: status))
    }
    switch (assignment.kill, assignment.reply) {
    case (nil, let reply?) where status == 0 && accept(reply, to: assignment, of: process): break
    case (.cancelled?, _): release(process, hasFailed: true)
    case (.timedOut(let limit)?, _):
      report(.timedOut(limit))
      release(process, hasFailed: true)
    case (.memory?, _): retry(assignment, in: process)
    case (let kill, let reply):
      report(kill == nil && reply == nil ? .ended : .invalidReply)
      statistics.crashed += 1
      // A fresh child ends for its image alone, unless the system kills it for lack of memory.
      if childWasUsed || kill == nil && status == SIGKILL, pending[assignment.ticket]?.isRetried == false {
        retry(assignment, in: process)
      } else {
        let error: DecodeError =
          switch status {
          case SIGABRT: .aborted
          case SIGKILL where kill == nil: .killed
          default: .crashed
          }
        conclude(assignment, of: process, .failure(error))
      }
    }
  }

  /// Answers the task of a decoder with the reply of its child. False if the reply is not true.
  private func accept(
    _ reply: CodecReply, to assignment: DecoderProcess.Assignment, of process: DecoderProcess
  ) -> Bool {
    switch reply {
    case .done(let decoded):
      guard assignment.files.accept(decoded, for: assignment.task.output) else { return false }
      conclude(assignment, of: process, .success(decoded))
    case .failed(let error): conclude(assignment, of: process, .failure(error))
    case .needs(let libraries):
      guard !process.libraries.include(libraries), pending[assignment.ticket]?.needed == nil else { return false }
      release(process, hasFailed: false)
      assignment.files.discardOutput()
      pending[assignment.ticket]?.needed = libraries
      requeue(assignment.ticket)
    case .ready, .started, .ended: return false
    }
    return true
  }

  private func conclude(
    _ assignment: DecoderProcess.Assignment, of process: DecoderProcess, _ result: Result<Decoded, DecodeError>
  ) {
    release(process, hasFailed: (try? result.get()) == nil)
    assignment.files.discardOutput()
    finish(assignment.ticket, result)
  }

  /// Runs the task of a decoder a second time, in a new child.
  private func retry(_ assignment: DecoderProcess.Assignment, in process: DecoderProcess) {
    release(process, hasFailed: true)
    assignment.files.discardOutput()
    pending[assignment.ticket]?.isRetried = true
    assign(assignment.ticket, to: process)
  }

  /// Marks a decoder as idle after its task.
  private func release(_ process: DecoderProcess, hasFailed: Bool) {
    observe(process, hasFailed: hasFailed)
    process.activity = .idle(since: now)
  }

  /// Reports the task of a busy decoder, which ends now.
  private func observe(_ process: DecoderProcess, hasFailed: Bool) {
    guard let observer, case .busy(let assignment) = process.activity else { return }
    observer(
      DecoderActivity(
        decoder: process.number, task: assignment.task.output.name, start: assignment.limits.start, end: .now,
        hasFailed: hasFailed))
  }

  /// Ends a decoder.
  ///
  /// - Parameters:
  ///   - cause: the failure to report; nil if the decoder works as it should.
  ///   - text: what the decoder wrote about its start.
  func terminate(_ process: DecoderProcess, after cause: DecoderFailure.Cause? = nil, _ text: String? = nil) {
    observe(process, hasFailed: true)
    process.socket.hangUp()
    var format: ImageFormat?
    if case .busy(let assignment) = process.activity { format = assignment.task.header.format }
    unreaped.append(
      Unreaped(
        parent: process.id, killAt: cause == nil ? now.advanced(by: Self.maxEndTime) : now,
        failure: cause.map { DecoderFailure($0, of: process.id, decoding: format, text: text) }))
    processes.removeAll { $0 === process }
  }

  /// Handles a parent that has ended, or that does not do its work.
  func handleLoss(of process: DecoderProcess, _ cause: DecoderFailure.Cause) {
    let text = process.takeMessage()
    terminate(process, after: cause, text)
    switch process.activity {
    case .idle: break
    case .starting:
      failedStarts[process.libraries, default: 0] += 1
      if hasProcess(with: process.libraries) || failedStarts[process.libraries, default: 0] < Self.maxFailedStarts {
        // Other processes are running, or one will be started later; constant attempts would not help.
        nextLaunch = now.advanced(by: Self.launchPause)
      } else {
        let message = "\(process.libraries.program) exited before it was ready: \(text ?? "the log has the reason")"
        failWaiting(.unavailable(message), with: process.libraries)
      }
    case .busy(let assignment):
      assignment.files.discardOutput()
      // Without a task if that is answered already.
      guard let task = pending[assignment.ticket] else { return }
      statistics.crashed += 1
      if task.isRetried { return finish(assignment.ticket, .failure(.crashed)) }
      pending[assignment.ticket]?.isRetried = true
      requeue(assignment.ticket)
    }
  }

  /// Has a task that ran wait again, for another decoder.
  private func requeue(_ ticket: DecodeTicket) {
    guard let pending = pending[ticket] else { return }
    queue.finish(ticket)
    queue.add(ticket, priority: pending.priority, pixels: pending.task.pixels)
  }
}

extension DecodeError {
  /// The error for an image that makes a library call abort(3).
  fileprivate static let aborted = DecodeError.corrupt("the image library aborts on this image")
}
