public import Platform
public import Threads

/// Runs deferred work: commits, flushes of uses, deletions of files, and sweeps after dead peers.
extension DiskTier {
  /// Performs the work that is due. Must be called after each batch of work on the executor's thread, which the global
  /// function `installMaintenance` arranges.
  ///
  /// - Returns: when it must be called again if nothing else happens; nil if no work is deferred.
  public func runMaintenance() -> Instant? {
    // Reopen the directory if it was deleted. A worker that serves only from memory would otherwise never notice, and
    // would miss invalidations by its peers.
    if session.current == nil { _ = try? session.usable() }
    guard session.current != nil, !session.isClosed else {
      session.abandonLeases()
      return nil
    }
    let instant = Instant.now
    drainDeliveries()
    if let by = schedule.flushBy, by <= instant { flushUses() }
    commitUnlessGathering(at: instant)
    guard !session.isSuspended else { return nil }
    let now = now
    let surveyIsDue =
      now - schedule.surveyAt >= MaintenanceSchedule.surveyInterval || now < schedule.surveyAt
      || peerTable?.isSurveyDue == true
    if mode == .readOnly {
      if surveyIsDue {
        schedule.surveyAt = now
        session.refreshReading()
      }
      return nil
    }
    retention.expire(now: now)
    if now < schedule.surveyAt || schedule.clockCheckWanted { clampFutureTimestamps() }
    // Delete due files before evicting: that may free enough space.
    removeDueIfAny()
    if surveyIsDue {
      watchFreeSpace()
      detectDeadPeers()
    }
    if let at = schedule.trimAt, at <= now { trim() }
    if let due = partials.nextExpiry, due <= now { partials.removeExpired(now: now) }
    sweepNextShard(now: now)
    // Commit, so that maintenance neither holds the write lock nor keeps an old read snapshot.
    commitUnlessGathering(at: instant)
    return nextWake(instant, now)
  }

  /// Commits, unless no peer waits for the rows and their batch interval has not ended.
  private func commitUnlessGathering(at instant: Instant) {
    if mode == .readOnly || hasPeers || schedule.commitBy.map({ $0 <= instant }) ?? true { commit() }
  }

  private func nextWake(_ instant: Instant, _ now: Int) -> Instant? {
    if sweep != nil { return instant }
    let sweepAt = schedule.sweepWanted ? now : schedule.sweepAt
    let seconds = [schedule.nextDue, schedule.trimAt, sweepAt, partials.nextExpiry].compactMap(\.self).min()
    let later = seconds.map { instant + .seconds(max($0 - now, 1)) }
    // With peers, survey at intervals: a dead peer may have left work to do.
    let detectDeadPeers = hasPeers ? instant + .seconds(MaintenanceSchedule.idleSurveyInterval) : nil
    return [schedule.commitBy, schedule.flushBy, later, detectDeadPeers].compactMap(\.self).min()
  }

  /// Commits at once if there are peers, so that they see the stored responses.
  public func listForOthers() { if hasPeers { commit() } }

  /// Commits if leases wait for it, which completes them.
  public func endLeases() { if session.hasLeases { commit() } }

  /// Commits everything and ends the read snapshot of look-ups, for a caller without maintenance.
  public func endTransaction() throws(StoreError) { if let error = commit() { throw error } }

  /// Commits the batch of rows and ends the read snapshot of look-ups. If it fails, the rows are lost and their files
  /// are swept; on a full disk the least recently used files are evicted for the next rows.
  @discardableResult
  func commit() -> StoreError? {
    schedule.commitBy = nil
    do throws(SQLiteError) {
      if try session.commit() { budget.hasEvictedForCommit = false }
      return nil
    } catch {
      schedule.requestSweep()
      let failure = StoreError(error)
      if !error.isOutOfSpace { return session.suspend(failure) }
      // Only once: a second eviction would find the same rows, whose files are deleted already.
      guard !budget.hasEvictedForCommit, evictAfterDiskFull() else {
        budget.hasEvictedForCommit = false
        return session.suspendWrites(failure)
      }
      budget.hasEvictedForCommit = true
      return failure
    }
  }

  /// Detects dead peers and surveys the living ones. Reopens the directory or the index if it was replaced.
  func detectDeadPeers() {
    guard let opened = session.current, let lock = opened.lock else { return }
    schedule.surveyAt = now
    switch session.detectReplacement() {
    case .folder:
      commit()
      session.closeFolder()
      return setPeerTable(nil)
    case .index:
      commit()
      session.closeIndex()
      schedule.requestSweep()
    case nil: break
    }
    let hadPeers = hasPeers
    guard let dead = try? detectDeadPeers(opened.folder, lock) else { return }
    if sweep == nil && (!dead.isEmpty || schedule.sweepWanted || (schedule.sweepAt.map { $0 <= now } ?? false)) {
      schedule.sweepWanted = false
      schedule.sweepAt = nil
      sweep = Sweep(deadPeers: dead, ownInstance: schedule.hasLeftovers ? lock.instance : nil)
      schedule.hasLeftovers = false
    }
    if !dead.isEmpty || !partials.hasAdopted && session.isIndexOpen { adoptPartials() }
    if hadPeers || hasPeers, session.isIndexOpen {
      try? session.withIndex { index throws(SQLiteError) in
        try partials.recordTotals(of: index)
        // Delete files whose deletion dead peers have scheduled.
        schedule.nextDue = try index.nextDue()
      }
      // Commit, so that later look-ups see the writes of peers.
      commit()
    }
  }

  /// Evicts if other programs have taken the free space.
  private func watchFreeSpace() {
    guard session.isIndexOpen else { return }
    try? makeSpace(for: 0, allowOverLimit: true)
  }

  /// Sets times in the future, left by a clock that was ahead, to now: otherwise their rows would be evicted and their
  /// files deleted last.
  func clampFutureTimestamps() {
    schedule.clockCheckWanted = false
    let now = now
    try? session.withIndex { index throws(SQLiteError) in
      guard try index.isAhead(of: now) else { return }
      try index.clampFutureTimestamps(to: now)
      schedule.nextDue = try index.nextDue()
      schedule.recordWrite()
    }
  }

  /// Sweeps one shard, so that other work does not wait.
  func sweepNextShard(now: Int) {
    guard var sweep, let opened = session.current, let lock = opened.lock else { return }
    let suspects = sweep.step(in: opened.folder, lock: lock)
    do throws(StoreError) {
      if !suspects.isEmpty {
        // Use a separate transaction, which sees the rows of peers and does not block their writes.
        commit()
        try session.withIndex { index throws(SQLiteError) in
          for suspect in suspects where budget[reservation: suspect.id] == nil {
            try remove(suspect, in: opened.folder, from: index, now: now)
          }
          schedule.nextDue = try index.nextDue()
        }
        if let error = commit() { throw error }
      }
      self.sweep = sweep.isOver ? nil : sweep
      if sweep.isOver { sweep.finish() }
    } catch {
      self.sweep = nil
      if sweep.ownInstance != nil { schedule.hasLeftovers = true }
      schedule.sweepWanted = false
      schedule.sweepAt = now + IndexSession.retryInterval
    }
  }

  /// Removes a file without a row. The deletion is scheduled for later if a host may still use the file.
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

/// Installs maintenance of the tiers and the scratch folder as the executor's after-batch hook.
///
/// - Parameter around: calls the maintenance that is passed to it and returns its result.
public func installMaintenance(
  on executor: ThreadExecutor, tiers: [DiskTier], scratch: ScratchFolder?,
  around: @escaping @Sendable (_ maintenance: () -> Instant?) -> Instant? = { $0() }
) {
  executor.setAfterBatch {
    around {
      let wakes =
        tiers.map { $0.assumeIsolated { $0.runMaintenance() } }
        + [scratch?.assumeIsolated { $0.runMaintenance() } ?? nil]
      return wakes.compactMap(\.self).min()
    }
  }
}

/// The deferred work of the disk tier and its due times.
struct MaintenanceSchedule {
  /// How long uses are batched before they are flushed, in seconds.
  static let flushInterval = 2
  /// How long rows are batched before a commit if there are no peers.
  static let commitInterval = Duration.milliseconds(500)
  /// The interval between surveys of the peers, in seconds.
  static let surveyInterval = 2
  /// The survey interval of an idle worker, in seconds.
  static let idleSurveyInterval = 30

  var commitBy: Instant?
  var flushBy: Instant?
  var surveyAt = Int.distantPast
  var sweepWanted = false
  /// Whether this worker may have lost rows of existing files.
  var hasLeftovers = false
  /// Whether to check for times in the future.
  var clockCheckWanted = false
  /// In Unix seconds, like the following properties.
  var sweepAt: Int?
  /// When the first scheduled deletion is due.
  var nextDue: Int?
  var trimAt: Int?

  /// Makes the next survey start a sweep for files whose rows may be lost.
  mutating func requestSweep() {
    hasLeftovers = true
    sweepWanted = true
  }

  mutating func recordWrite() { if commitBy == nil { commitBy = .now + Self.commitInterval } }

  mutating func recordUse() { if flushBy == nil { flushBy = .now + .seconds(Self.flushInterval) } }
}

extension Int {
  static var distantPast: Int { .min / 2 }
}
