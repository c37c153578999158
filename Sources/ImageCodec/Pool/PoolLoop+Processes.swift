internal import Platform

/// Starts processes, assigns tasks to them, and handles their results and their ends.
extension PoolLoop {
  func dispatch() {
    if !formatWaiters.isEmpty, !hasProcess(with: .all) { _ = launch(with: .all) }
    while let ticket = queue.nextThatFits() {
      guard let process = processes.first(where: { $0.isIdle && $0.libraries.include(libraries(for: ticket)) })
      else { break }
      _ = queue.dequeue()
      assign(ticket, to: process)
    }
    guard let next = queue.nextThatFits() else { return }
    let starting = processes.count { $0.isStarting && $0.reserved == nil }
    var wanted = queue.waitingCount - starting
    while wanted > 0, launch(with: libraries(for: next)) != nil { wanted -= 1 }
  }

  private func libraries(for ticket: DecodeTicket) -> DecoderLibraries {
    pending[ticket]?.task.libraries ?? .common
  }

  /// Starts a process, which replaces an idle one that lacks libraries if the maximum is reached. Nil if the start
  /// fails; the tasks that wait for it then fail, unless there are other processes.
  func launch(with libraries: DecoderLibraries) -> DecoderProcess? {
    if let nextLaunch, now < nextLaunch { return nil }
    nextLaunch = nil
    if processes.count >= max(1, settings.count) {
      guard let idle = processes.first(where: { $0.isIdle && !$0.libraries.include(libraries) }) else { return nil }
      terminate(idle)
    }
    do throws(DecodeError) {
      guard let executable = settings.executable ?? DecoderExecutable.find() else {
        throw .unavailable(DecoderExecutable.missing)
      }
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
  func failWaiting(_ error: DecodeError, with libraries: DecoderLibraries = .common) {
    for ticket in queue.waitingTickets where self.libraries(for: ticket).include(libraries) {
      if queue.remove(ticket) { answer(ticket, .failure(error)) }
    }
    tellFormatWaiters(CodecFormats())
  }

  private func tellFormatWaiters(_ formats: CodecFormats) {
    let waiters = formatWaiters
    formatWaiters = []
    for then in waiters { then(formats) }
  }

  func assign(_ ticket: DecodeTicket, to process: DecoderProcess) {
    guard let task = pending[ticket]?.task else { return queue.finish(ticket) }
    if pending[ticket]?.startedAt == nil { pending[ticket]?.startedAt = now }
    do throws(DecodeError) {
      // The formats may have become known after the task was queued.
      if let error = task.refusal(formats: formats) { throw error }
      let assignment = DecoderProcess.Assignment(
        ticket: ticket, name: task.output.name, files: try TaskFiles(task), started: now,
        deadline: now.advanced(by: settings.timeout))
      if !process.start(CodecRequest(task), assignment) {
        process.activity = .busy(assignment)
        handleCrash(process, .ended)
      }
    } catch {
      finish(ticket, .failure(error))
    }
  }

  func listen(to process: DecoderProcess) {
    switch process.receive() {
    case .nothing: break
    case .lost: handleCrash(process, .ended)
    case .invalid: handleCrash(process, .invalidReply)
    case .reply(let reply):
      switch (process.activity, reply) {
      case (.starting, .ready(let formats, let sandbox)): handleReady(process, formats, sandbox)
      case (.busy(let assignment), .done(let decoded)): complete(assignment, of: process, decoded)
      // Earlier images may have left too little memory; a new process has all that is allowed.
      case (.busy, .failed(.outOfMemory(let text))) where process.decodes > 1:
        handleCrash(process, nil, for: .outOfMemory(text))
      case (.busy(let assignment), .failed(let error)):
        release(process, hasFailed: true)
        assignment.files.discardOutput()
        finish(assignment.ticket, .failure(error))
      default: handleCrash(process, .invalidReply)
      }
    }
  }

  func handleReady(_ process: DecoderProcess, _ formats: CodecFormats, _ sandbox: [String]) {
    process.activity = .idle(since: now)
    failedStarts[process.libraries] = 0
    statistics.sandbox = sandbox
    publish()
    if process.libraries == .all {
      self.formats = formats
      tellFormatWaiters(formats)
    }
    if let ticket = process.reserved {
      process.reserved = nil
      assign(ticket, to: process)
    }
  }

  func complete(_ assignment: DecoderProcess.Assignment, of process: DecoderProcess, _ decoded: Decoded) {
    guard let task = pending[assignment.ticket]?.task else {
      release(process)
      return queue.finish(assignment.ticket)
    }
    // A decoder whose reply is not true is treated as crashed.
    guard assignment.files.accept(decoded, for: task.output) else { return handleCrash(process, .invalidReply) }
    release(process)
    finish(assignment.ticket, .success(decoded))
  }

  /// Marks a process as idle after its task. Ends it after its last permitted decode, or if it has allocated too much:
  /// libraries leak memory when they fail.
  func release(_ process: DecoderProcess, hasFailed: Bool = false) {
    observe(process, hasFailed: hasFailed)
    process.activity = .idle(since: now)
    let isLookedAt = hasFailed || process.decodes.isMultiple(of: 16)
    let isDue = isLookedAt && process.allocatedBytes > Self.maxIdleProcessBytes
    if process.decodes >= settings.decodesPerProcess || isDue { terminate(process) }
  }

  /// Reports the task of a busy process, which ends now.
  private func observe(_ process: DecoderProcess, hasFailed: Bool) {
    guard let observer, case .busy(let assignment) = process.activity else { return }
    observer(
      DecoderActivity(
        decoder: process.number, task: assignment.name, start: assignment.started, end: .now, hasFailed: hasFailed))
  }

  /// - Parameter cause: the failure to report; nil if the process works as it should.
  func terminate(_ process: DecoderProcess, after cause: DecoderFailure.Cause? = nil) {
    observe(process, hasFailed: true)
    process.kill()
    unreaped.append((process.id, cause.map { DecoderFailure($0, of: process.id, decoding: format(in: process)) }))
    processes.removeAll { $0 === process }
  }

  /// The format of the image that the process decodes.
  private func format(in process: DecoderProcess) -> ImageFormat? {
    if case .busy(let assignment) = process.activity { pending[assignment.ticket]?.task.header.format } else { nil }
  }

  /// Handles the crash of a process, or a failure that is treated as one.
  ///
  /// - Parameters:
  ///   - cause: the failure to report; nil if a new process is all that is needed.
  ///   - error: the error of the task if it cannot be retried.
  func handleCrash(_ process: DecoderProcess, _ cause: DecoderFailure.Cause?, for error: DecodeError = .crashed) {
    terminate(process, after: cause)
    switch process.activity {
    case .idle: break
    case .starting:
      failedStarts[process.libraries, default: 0] += 1
      if let ticket = process.reserved { finish(ticket, .failure(.crashed)) }
      if hasProcess(with: process.libraries) || failedStarts[process.libraries, default: 0] < Self.maxFailedStarts {
        // Other processes are running, or one will be started later; constant attempts would not help.
        nextLaunch = now.advanced(by: Self.launchPause)
      } else {
        failWaiting(.unavailable("the decoder exited before it was ready; it needs libvips"), with: process.libraries)
      }
    case .busy(let assignment):
      assignment.files.discardOutput()
      guard let task = pending[assignment.ticket], !assignment.isCancelled else {
        return queue.finish(assignment.ticket)
      }
      if error == .crashed { statistics.crashed += 1 }
      if !task.hasCrashedOnce, let fresh = launch(with: libraries(for: assignment.ticket)) {
        pending[assignment.ticket]?.hasCrashedOnce = true
        fresh.reserved = assignment.ticket
      } else {
        finish(assignment.ticket, .failure(error))
      }
    }
  }
}
