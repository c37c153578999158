internal import HTTPTypes
internal import Threads

/// Storing, and noting what was delivered.
extension DiskTier {
  /// A temporary file for a large body, counted against the limit as it grows.
  ///
  /// - Parameters:
  ///   - expected: the body's length, if known: the room for it is made at once.
  ///   - partial: what the body is the beginning of, if its file may stay when the rest does not come.
  ///
  /// Throws `noRoom`, `diskFull` or `io`.
  public func makeSpool(expected: Int64? = nil, of partial: PartialRecord? = nil) throws(StoreError) -> BodySpool {
    let spool = try withFolder { session throws(FileError) in
      let id = session.nextID()
      return try BodySpool(id: id, in: session.folder, executor: executor, room: room(for: id))
    }
    spooled[spool.id] = 0
    if let expected, let error = reserve(expected, for: spool.id) {
      spool.assumeIsolated { $0.discard() }
      throw error
    }
    if let partial { try? list(partial, id: spool.id) }
    return spool
  }

  func room(for id: Int64) -> BodySpool.SpaceReservation {
    BodySpool.SpaceReservation(
      reserve: { [weak self] byteCount in
        guard let self else { return StoreError(.io, "the disk tier is closed") }
        return self.assumeIsolated { $0.reserve(byteCount, for: id) }
      },
      release: { [weak self] in self?.assumeIsolated { $0.release(id) } ?? true },
      leave: { [weak self] byteCount in self?.assumeIsolated { $0.leave(id, byteCount: byteCount) } ?? false })
  }

  private func reserve(_ byteCount: Int64, for id: Int64) -> StoreError? {
    // What arrives while the worker ends may be of use to the next one.
    if isClosed && listedSpools.contains(id) { return nil }
    do throws(StoreError) {
      let folder = try usableSession().folder
      let wanted = folder.allocated(byteCount)
      let held = spooled[id] ?? 0
      if wanted > held {
        guard wanted <= largestFile(in: folder) else { throw tooLarge }
        try makeRoom(for: wanted - held, allowOverLimit: false)
        spooled[id] = wanted
        // The others see it; there may be a long way to the end of the batch.
        if hasPeers { commit() }
      }
      return nil
    } catch {
      return error
    }
  }

  /// Stores a complete body, in place of what has the same key, partition, variant and varying fields.
  ///
  /// - Parameters:
  ///   - draft: `byteCount` is filled in, and so is `digest` unless it is there.
  ///   - delivered: whether its path is given to a host now. Then it may stand above the limit for a while.
  ///   - clearCount: what the board said when its transfer began.
  /// - Returns: the draft with its id, size and digest.
  ///
  /// Throws `outdated`, `cleared`, `noRoom`, `diskFull` or `io`; nothing is in the cache then, and a spool can be read
  /// on: `discard` is the caller's.
  public func store(
    _ body: Body, as draft: StoredResponse, delivered: Bool, clearCount: UInt64? = nil
  ) throws(StoreError) -> StoredResponse {
    var response = draft
    response.isVerified = true
    if hasPeers {
      // From here on nobody else can clear or store anything until the commit.
      try withIndex { index throws(SQLiteError) in try index.beginWriting() }
      if let clearCount, isCleared(draft, since: clearCount) {
        throw StoreError(.cleared, "the image was cleared from the cache while it was being stored")
      }
    }
    if !response.variant.isEmpty, try withIndex({ index throws(SQLiteError) in try isOutdated(draft, in: index) }) {
      throw StoreError(.outdated, "the original has been replaced")
    }
    switch body {
    case .bytes(let bytes): try place(bytes, as: &response, delivered: delivered)
    case .spool(let spool): try place(spool, as: &response)
    }
    do throws(StoreError) {
      try list(response, delivered: delivered)
    } catch {
      session?.folder.remove(response.file)
      throw error
    }
    if case .spool(let spool) = body { spool.assumeIsolated { $0.discard() } }
    return response
  }

  private func place(_ bytes: [UInt8], as response: inout StoredResponse, delivered: Bool) throws(StoreError) {
    let session = try writableSession()
    let allocated = session.folder.allocated(Int64(bytes.count))
    guard allocated <= largestFile(in: session.folder) else { throw tooLarge }
    try makeRoom(for: allocated, allowOverLimit: delivered)
    response.byteCount = Int64(bytes.count)
    if response.digest.isEmpty { response.digest = SHA256.digest(of: bytes) }
    let (digest, format) = (response.digest, response.format)
    response.id = try withFolder { session throws(FileError) in
      let file = FileName(id: session.nextID(), digest: digest, format: format)
      try session.folder.write(bytes, id: file.id, as: file.path)
      return file.id
    }
  }

  private func place(_ spool: BodySpool, as response: inout StoredResponse) throws(StoreError) {
    let folder = try writableSession().folder
    response = try spool.assumeIsolatedThrowing { spool throws(StoreError) in
      var draft = response
      draft.id = spool.id
      draft.byteCount = spool.byteCount
      try spool.finish { digest throws(StoreError) in
        draft.digest = digest
        do throws(FileError) {
          try folder.publish(id: draft.id, as: draft.file)
        } catch {
          throw StoreError(error)
        }
      }
      return draft
    }
  }

  private func list(_ response: StoredResponse, delivered: Bool) throws(StoreError) {
    let now = now
    let session = try usableSession()
    let allocated = session.folder.allocated(response.byteCount)
    let deliveredAt = delivered ? now : 0
    try withIndex { index throws(SQLiteError) in
      while try !index.insert(
        response, allocated: allocated, usedAt: now, deliveredAt: deliveredAt, boot: session.bootNumber)
      {
        if let conflictingRow = try index.conflictingRow(of: response) { try replace(conflictingRow, in: index, now: now) }
      }
      if !response.varyingHeaders.isEmpty {
        for excessVariants in try index.excessVariants(beside: response) { try replace(excessVariants, in: index, now: now) }
      }
      if response.variant.isEmpty, try index.hasVariants() {
        try settleVariants(of: response, in: index, now: now)
      }
    }
    if delivered { deliveries.pin(response.id, at: now) }
    schedule.noteWrite()
    try removeReplaced()
    if suspension == nil && writeSuspension == nil { hasWarned = false }
  }

  /// Runs `work` on the folder: anew in a folder made again when it was deleted, and after making room when the disk is
  /// full.
  private func withFolder<Result>(_ work: (Session) throws(FileError) -> Result) throws(StoreError) -> Result {
    var mayRetry = true
    while true {
      let session = try writableSession()
      do throws(FileError) {
        return try work(session)
      } catch {
        if mayRetry && error.isMissing {
          scheduleOrphanSweep()
          self.session = nil
        } else if !mayRetry || !error.isOutOfSpace || !makeSomeRoom() {
          throw error.concernsFolder || error.isMissing ? suspendWrites(StoreError(error)) : StoreError(error)
        }
        mayRetry = false
      }
    }
  }

  private var tooLarge: StoreError { StoreError(.noRoom, "the image is larger than a tenth of the disk cache's limit") }

  /// Writes what a 304 changed: header fields, times, and what follows from them. Nothing happens when the response is
  /// gone.
  public func update(_ response: StoredResponse) {
    guard mode == .readWrite else { return }
    try? withIndex { index throws(SQLiteError) in
      try index.update(response, id: response.id)
      try updateRelatives(of: response, in: index)
    }
    schedule.noteWrite()
  }

  /// Notes that an image was given to a host at `time` (Unix seconds), which counts as a use; by its path, it stays for
  /// 60 s.
  ///
  /// Nothing is written at once; the index is told when uses are flushed, seconds later.
  public func markDelivered(_ id: Int64, at time: Int, byPath: Bool = true) {
    guard mode == .readWrite else { return }
    noteUse(of: id, UsageJournal.Use(at: time, isDelivery: byPath))
  }

  /// The same for a path that `absolutePath` gave, which has counted as a use before. Nothing happens with any other.
  public func markDelivered(path: String, at time: Int) {
    guard path.hasPrefix(directory + "/"), let name = path.split(separator: "/").last,
      let file = FileName.parse(String(name))
    else { return }
    noteUse(of: file.id, UsageJournal.Use(at: time, times: 0))
  }

  func noteUse(of id: Int64, _ use: UsageJournal.Use) {
    // At once, before it is looked whether the file is there: the other workers read in the index only later.
    pins.announce(id, at: use.at)
    deliveries.note(id, use)
    schedule.noteUse()
  }

  /// The path of a stored response for a host to have now, from any thread and without waiting for the store's. It
  /// stays for 60 s, and counts as used. Nil when the file is gone or has another size, or is to be read through first.
  public nonisolated func pin(_ response: StoredResponse) -> String? {
    if verification.withLock({ $0 }) == .always { return nil }
    noteUse(of: response)
    let path = absolutePath(of: response)
    return (try? environment.files.status(path))?.byteCount == response.byteCount ? path : nil
  }

  /// Notes that the image was given to a host from elsewhere, from any thread: it counts as used.
  public nonisolated func noteUse(of response: StoredResponse) {
    guard mode == .readWrite, pins.pin(response.id, at: environment.now()) else { return }
    // Its thread may have nothing else to do for long; housekeeping follows whatever it does.
    executor.run {}
  }

  /// Enters in the book what other threads have pinned.
  func notePins() {
    for (id, use) in pins.take() { noteUse(of: id, use) }
  }

  /// Removes what `response` would have replaced, had it been stored, variants included; files once the 60 s after
  /// their last delivery are over.
  public func remove(replacedBy response: StoredResponse) {
    guard mode == .readWrite else { return }
    let now = now
    try? withIndex { index throws(SQLiteError) in
      if let conflictingRow = try index.conflictingRow(of: response), conflictingRow.id != response.id {
        try replace(conflictingRow, in: index, now: now)
      }
      if response.variant.isEmpty, try index.hasVariants() {
        try settleVariants(of: response, in: index, now: now)
      }
      schedule.noteWrite()
    }
    try? removeReplaced()
  }
}
