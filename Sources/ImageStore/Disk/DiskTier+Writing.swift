internal import HTTPTypes
internal import Threads

/// Stores responses.
extension DiskTier {
  /// Creates a temporary file for a large body. Its bytes count against the limit as it grows.
  ///
  /// - Parameters:
  ///   - expected: the body's length, if known; the space for it is reserved at once.
  ///   - partial: the identity of the partial body, if the file may be retained for resuming when the transfer breaks.
  ///
  /// Throws `overLimit`, `diskFull` or `io`.
  public func makeSpool(expected: Int64? = nil, of partial: PartialRecord? = nil) throws(StoreError) -> BodySpool {
    let spool = try withFolder { opened throws(FileError) in
      let id = opened.nextID()
      return try BodySpool(id: id, in: opened.folder, executor: executor, reservation: reservation(for: id))
    }
    setReservation(0, for: spool.id)
    if let expected, let error = reserve(expected, for: spool.id) {
      spool.assumeIsolated { $0.discard() }
      throw error
    }
    if let partial { try? partials.list(partial, id: spool.id, now: now) }
    return spool
  }

  func reservation(for id: Int64) -> BodySpool.SpaceReservation {
    BodySpool.SpaceReservation(
      reserve: { [weak self] byteCount in
        guard let self else { return StoreError(.io, "the disk tier is closed") }
        return self.assumeIsolated { $0.reserve(byteCount, for: id) }
      },
      release: { [weak self] in self?.assumeIsolated { $0.release(id) } ?? true },
      retain: { [weak self] byteCount in
        self?.assumeIsolated { $0.retainForResume(id, byteCount: byteCount) } ?? false
      })
  }

  /// Sets the bytes reserved for a spool, and publishes the sum to the peers.
  func setReservation(_ byteCount: Int64?, for id: Int64) {
    budget[reservation: id] = byteCount
    peerTable?.setUnlistedBytes(budget.reservedBytes)
  }

  private func reserve(_ byteCount: Int64, for id: Int64) -> StoreError? {
    // The next worker may resume from bytes that arrive while this one closes.
    if session.isClosed && partials.isListed(id) { return nil }
    do throws(StoreError) {
      let folder = try session.usable().folder
      let wanted = folder.allocated(byteCount)
      let reserved = budget[reservation: id] ?? 0
      if wanted > reserved {
        guard wanted <= budget.maxFileBytes(blockSize: folder.blockSize) else { throw tooLarge }
        try makeSpace(for: wanted - reserved, allowOverLimit: false)
        setReservation(wanted, for: id)
        // Publish it to the peers now: the next commit may be far away.
        if hasPeers { commit() }
      }
      return nil
    } catch {
      return error
    }
  }

  /// Stores a complete body and replaces the response with the same key, partition, variant and varying fields.
  ///
  /// - Parameters:
  ///   - draft: its size is filled in, and its digest if it is empty.
  ///   - delivered: whether its path is delivered to a host now. The tier may then exceed its limit for a while.
  ///   - clearCount: the peer table's `clearCount` when the transfer began.
  /// - Returns: the draft with its id, size and digest.
  ///
  /// Throws `outdated`, `cleared`, `overLimit`, `diskFull` or `io`. Nothing is cached then; a spool remains readable,
  /// and the caller must `discard` it.
  public func store(
    _ body: Body, as draft: StoredResponse, delivered: Bool, clearCount: UInt64? = nil
  ) throws(StoreError) -> StoredResponse {
    var response = draft
    response.isVerified = true
    if hasPeers {
      // Take the write lock: no peer can clear or store anything until the commit.
      try session.withIndex { index throws(SQLiteError) in try index.beginWriting() }
      if let clearCount, isCleared(draft, since: clearCount) {
        throw StoreError(.cleared, "the image was cleared from the cache while it was being stored")
      }
    }
    if !response.variant.isEmpty,
      try session.withIndex({ index throws(SQLiteError) in try isOutdated(draft, in: index) })
    {
      throw StoreError(.outdated, "the original has been replaced")
    }
    switch body {
    case .bytes(let bytes): try writeFile(bytes, as: &response, delivered: delivered)
    case .spool(let spool): try publish(spool, as: &response)
    }
    do throws(StoreError) {
      try list(response, delivered: delivered)
    } catch {
      session.folder?.remove(response.file)
      throw error
    }
    if case .spool(let spool) = body { spool.assumeIsolated { $0.discard() } }
    return response
  }

  private func writeFile(_ bytes: [UInt8], as response: inout StoredResponse, delivered: Bool) throws(StoreError) {
    let folder = try session.writable().folder
    let allocated = folder.allocated(Int64(bytes.count))
    guard allocated <= budget.maxFileBytes(blockSize: folder.blockSize) else { throw tooLarge }
    try makeSpace(for: allocated, allowOverLimit: delivered)
    response.content.byteCount = Int64(bytes.count)
    if response.content.digest.isEmpty { response.content.digest = SHA256.digest(of: bytes) }
    let (digest, format) = (response.content.digest, response.content.format)
    response.id = try withFolder { opened throws(FileError) in
      let file = FileName(id: opened.nextID(), digest: digest, format: format)
      try opened.folder.write(bytes, id: file.id, as: file.path)
      return file.id
    }
  }

  private func publish(_ spool: BodySpool, as response: inout StoredResponse) throws(StoreError) {
    let folder = try session.writable().folder
    response = try spool.assumeIsolatedThrowing { spool throws(StoreError) in
      var draft = response
      draft.id = spool.id
      draft.content.byteCount = spool.byteCount
      try spool.finish { digest throws(StoreError) in
        draft.content.digest = digest
        try StoreError.mapping { () throws(FileError) in try folder.publish(id: draft.id, as: draft.file) }
      }
      return draft
    }
  }

  private func list(_ response: StoredResponse, delivered: Bool) throws(StoreError) {
    let now = now
    let opened = try session.usable()
    let allocated = opened.folder.allocated(response.content.byteCount)
    let deliveredAt = delivered ? now : 0
    try session.withIndex { index throws(SQLiteError) in
      while try !index.insert(
        response, allocated: allocated, usedAt: now, deliveredAt: deliveredAt, boot: opened.bootNumber)
      {
        // Only a damaged index refuses a row without a conflicting one; it is replaced.
        guard let conflictingRow = try index.conflictingRow(of: response) else { throw SQLiteError.damage }
        try replace(conflictingRow, in: index, now: now)
      }
      if !response.varyingHeaders.isEmpty {
        for row in try index.excessVariants(beside: response) {
          try replace(row, in: index, now: now)
        }
      }
      if response.variant.isEmpty, try index.hasVariants() {
        try reconcileVariants(of: response, in: index, now: now)
      }
    }
    if delivered { retention.recordDelivery(of: response.id, at: now) }
    schedule.recordWrite()
    try removeReplaced()
    session.recordSuccess()
  }

  private func withFolder<Result>(_ work: (OpenFolder) throws(FileError) -> Result) throws(StoreError) -> Result {
    try session.withFolder(evict: evictAfterDiskFull, work)
  }

  private var tooLarge: StoreError {
    StoreError(.overLimit, "the image is larger than a tenth of the disk cache's limit")
  }

  /// Writes the header fields, times and derived values that a 304 changed. Does nothing if the response is deleted.
  public func update(_ response: StoredResponse) {
    guard mode == .readWrite else { return }
    try? session.withIndex { index throws(SQLiteError) in
      try index.update(response, id: response.id)
      try updateSiblings(of: response, in: index)
    }
    schedule.recordWrite()
  }

  /// Removes the responses that storing `response` would have replaced, variants included. A file is deleted when the
  /// 60 s after its last delivery end.
  public func remove(replacedBy response: StoredResponse) {
    guard mode == .readWrite else { return }
    let now = now
    try? session.withIndex { index throws(SQLiteError) in
      if let conflictingRow = try index.conflictingRow(of: response), conflictingRow.id != response.id {
        try replace(conflictingRow, in: index, now: now)
      }
      if response.variant.isEmpty, try index.hasVariants() {
        try reconcileVariants(of: response, in: index, now: now)
      }
      schedule.recordWrite()
    }
    try? removeReplaced()
  }
}

/// Variants are stored next to their original and belong to one content of it.
///
/// The rows of an original and of its variants have the same header fields and times, whichever is revalidated. A
/// stored variant never differs in content from its stored original. A variant may outlive its original if the original
/// is evicted first.
extension DiskTier {
  /// Writes the decode metadata of a stored response. Does nothing if the response is deleted.
  public func recordMetadata(of response: StoredResponse) {
    guard mode == .readWrite else { return }
    try? session.withIndex { index throws(SQLiteError) in try index.setDecodeMetadata(of: response) }
    schedule.recordWrite()
  }

  /// Whether the original that the variant was made from has been replaced by one of another content.
  func isOutdated(_ variant: StoredResponse, in index: DiskIndex) throws(SQLiteError) -> Bool {
    guard let source = variant.metadata?.source else { return false }
    return try index.digest(ofOriginalOf: variant).map { $0 != source.digest } ?? false
  }

  /// Updates the variants of an original that was just inserted, and removes those of another content.
  func reconcileVariants(of original: StoredResponse, in index: DiskIndex, now: Int) throws(SQLiteError) {
    for sibling in try index.siblings(of: original) {
      if sibling.originalDigest == original.content.digest {
        try index.update(original, id: sibling.record.id)
      } else {
        try replace(sibling.record, in: index, now: now)
      }
    }
  }

  /// Writes the fields that a 304 changed to all rows of the same original.
  func updateSiblings(of response: StoredResponse, in index: DiskIndex) throws(SQLiteError) {
    for sibling in try index.siblings(of: response) where sibling.originalDigest == response.originalDigest {
      try index.update(response, id: sibling.record.id)
    }
  }
}
