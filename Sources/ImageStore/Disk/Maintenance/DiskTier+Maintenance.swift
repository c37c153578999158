public import Threads

/// What is put off: committing, writing uses, removing what is due, sweeping after dead workers.
extension DiskTier {
  /// Does what is due. Call it after each batch of work on the executor's thread: `runMaintenance` does.
  ///
  /// - Returns: when it wants to be called again if nothing else happens; nil when nothing is put off.
  public func runMaintenance() -> ContinuousClock.Instant? {
    // One that answers from memory alone would else hear nothing of others once its folder was gone.
    if session == nil { _ = try? usableSession() }
    guard session != nil, !isClosed else {
      leases = []
      return nil
    }
    let instant = ContinuousClock.now
    notePins()
    if let by = schedule.flushBy, by <= instant { flushUses() }
    commitUnlessGathering(at: instant)
    guard suspension == nil else { return nil }
    let now = now
    let surveyIsDue =
      now - schedule.surveyAt >= MaintenanceSchedule.surveyInterval || now < schedule.surveyAt || peerTable?.isSurveyDue == true
    if mode == .readOnly {
      if surveyIsDue { refreshReading() }
      return nil
    }
    deliveries.forget(now: now)
    if now < schedule.surveyAt || schedule.clockCheckWanted { clampFutureTimestamps() }
    // Before anything is evicted: what they leave may be room enough.
    removeDueIfAny()
    if surveyIsDue {
      watchFreeSpace()
      detectDeadPeers()
    }
    if let at = schedule.trimAt, at <= now { trim() }
    if let due = schedule.partialsDue, due <= now { removeExpiredPartials() }
    takeStepOfSweep(now: now)
    // What all this has written is not to keep others from writing, nor what it has read to keep a view of the index.
    commitUnlessGathering(at: instant)
    return nextWake(instant, now)
  }

  /// Commits unless rows gather, for which nobody else waits, until their time comes.
  private func commitUnlessGathering(at instant: ContinuousClock.Instant) {
    if mode == .readOnly || hasPeers || schedule.commitBy.map({ $0 <= instant }) ?? true { commit() }
  }

  private func nextWake(_ instant: ContinuousClock.Instant, _ now: Int) -> ContinuousClock.Instant? {
    if sweep != nil { return instant }
    let sweepAt = schedule.sweepWanted ? now : schedule.sweepAt
    let seconds = [schedule.nextDue, schedule.trimAt, sweepAt, schedule.partialsDue].compactMap(\.self).min()
    let later = seconds.map { instant + .seconds(max($0 - now, 1)) }
    // Who has company looks from time to time whether that is gone and has left something to do.
    let detectDeadPeers = hasPeers ? instant + .seconds(MaintenanceSchedule.idleSurveyInterval) : nil
    return [schedule.commitBy, schedule.flushBy, later, detectDeadPeers].compactMap(\.self).min()
  }

  /// Lists at once, for other workers, what has been stored.
  public func listForOthers() {
    if hasPeers { commit() }
  }

  /// Ends the leases of what has been stored, by listing it.
  public func endLeases() {
    if !leases.isEmpty { commit() }
  }

  /// Writes the rows gathered, and ends the look-ups' view of the index. What could not be written is lost, and its
  /// files are swept; on a full disk what was used least makes way for the next rows.
  @discardableResult
  func commit() -> StoreError? {
    schedule.commitBy = nil
    // Those whose rows are not committed end as if nothing had come of them.
    defer { leases.removeAll(keepingCapacity: true) }
    guard let index = session?.index else { return nil }
    do throws(SQLiteError) {
      let hasWritten = index.transaction == .writing
      try index.commit()
      if hasWritten { hasMadeRoom = false }
      for lease in leases { lease.succeed() }
      return nil
    } catch {
      scheduleOrphanSweep()
      let failure = StoreError(error)
      if !error.isOutOfSpace { return suspend(failure) }
      // Once: where nothing comes of it, it would find the same rows again, whose files are gone.
      guard !hasMadeRoom, makeSomeRoom() else {
        hasMadeRoom = false
        return suspendWrites(failure)
      }
      hasMadeRoom = true
      return failure
    }
  }

  func flushUses() {
    schedule.flushBy = nil
    notePins()
    guard mode == .readWrite, !(deliveries.uses.isEmpty && verified.isEmpty) else { return }
    try? withIndex { index throws(SQLiteError) in try flushUses(to: index) }
    schedule.noteWrite()
  }

  func flushUses(to index: DiskIndex) throws(SQLiteError) {
    for (id, use) in deliveries.takeUses() { try index.touch(id, use) }
    for id in verified { try index.markVerified(id) }
    verified = []
  }

  /// Looks whether other workers live, whether any died, and whether the index is still the one that was opened.
  func detectDeadPeers() {
    guard let session, let lock = session.lock else { return }
    schedule.surveyAt = now
    guard session.folder.isInPlace else {
      commit()
      self.session = nil
      setBoard(nil)
      return
    }
    if let opened = session.indexIdentity, session.index != nil,
      FileIdentity(Self.indexName, in: session.folder) != opened
    {
      commit()
      session.index = nil
      scheduleOrphanSweep()
    }
    let mayHaveHadCompany = hasPeers
    guard let dead = try? detectDeadPeers(session.folder, lock) else { return }
    if sweep == nil && (!dead.isEmpty || schedule.sweepWanted || (schedule.sweepAt.map { $0 <= now } ?? false)) {
      schedule.sweepWanted = false
      schedule.sweepAt = nil
      sweep = Sweep(deadPeers: dead, own: hasLeftovers ? lock.instance : nil)
      hasLeftovers = false
    }
    if !dead.isEmpty || !hasAdopted && session.index != nil { adoptPartials() }
    if mayHaveHadCompany || hasPeers, let index = session.index {
      try? noteTotals(of: index)
      // What others have doomed and left is for who is there.
      schedule.nextDue = try? index.nextDue()
      // Later look-ups are to see what others write from now on.
      commit()
    }
  }

  /// Shrinks the tier when others have taken the free space.
  private func watchFreeSpace() {
    guard session?.index != nil else { return }
    try? makeRoom(for: 0, allowOverLimit: true)
  }

  /// Nothing of a clock that was ahead is used last or removed last for ever.
  func clampFutureTimestamps() {
    schedule.clockCheckWanted = false
    let now = now
    try? withIndex { index throws(SQLiteError) in
      guard try index.isAhead(of: now) else { return }
      try index.clampFutureTimestamps(to: now)
      schedule.nextDue = try index.nextDue()
      schedule.noteWrite()
    }
  }

  /// Has files looked for whose rows may be lost.
  func scheduleOrphanSweep() {
    hasLeftovers = true
    schedule.sweepWanted = true
  }

  /// One shard, so that work that comes in meanwhile does not wait.
  private func takeStepOfSweep(now: Int) {
    guard var sweep, let session, let lock = session.lock else { return }
    let suspects = sweep.step(in: session.folder, lock: lock)
    do throws(StoreError) {
      if !suspects.isEmpty {
        // Rows of other workers are seen, and theirs not held up, by a transaction of its own.
        commit()
        try withIndex { index throws(SQLiteError) in
          for suspect in suspects where spooled[suspect.id] == nil {
            try remove(suspect, in: session.folder, from: index, now: now)
          }
          schedule.nextDue = try index.nextDue()
        }
        if let error = commit() { throw error }
      }
      self.sweep = sweep.isOver ? nil : sweep
      if sweep.isOver { sweep.finish() }
    } catch {
      self.sweep = nil
      if sweep.own != nil { hasLeftovers = true }
      schedule.sweepWanted = false
      schedule.sweepAt = now + Self.retryInterval
    }
  }

  /// Removes a file that has no row; one that a host may still count on is doomed.
  private func remove(
    _ suspect: Sweep.OrphanFile, in folder: CacheFolder, from index: DiskIndex, now: Int
  ) throws(SQLiteError) {
    if suspect.isTemporary {
      if try !index.contains(partial: suspect.id) { folder.remove(suspect.path) }
    } else if try !index.contains(id: suspect.id),
      let status = try? folder.files.status(suspect.path, in: folder.descriptor)
    {
      let record = FileRecord(
        id: suspect.id, file: suspect.path, allocated: folder.allocated(status.byteCount), usedAt: now,
        deliveredAt: status.modificationSecond)
      try deleteFile(of: record, from: index, now: now)
    }
  }
}

/// Has the store look after itself from now on: takes the executor's after-batch hook.
public func runMaintenance(on executor: ThreadExecutor, tiers: [DiskTier], scratch: ScratchFolder?) {
  executor.setAfterBatch {
    let wakes = tiers.map { $0.assumeIsolated { $0.runMaintenance() } } + [scratch?.assumeIsolated { $0.runMaintenance() } ?? nil]
    return wakes.compactMap(\.self).min()
  }
}
