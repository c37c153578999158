internal import HTTPCaching
internal import Threads

/// Resuming broken transfers. See `PartialFiles`.
extension DiskTier {
  /// Whether partial files may exist, as far as is known. Callable from any thread.
  public nonisolated var mayHavePartials: Bool { mode == .readWrite && partialsExist.withLock { $0 } }

  /// Whether a partial file of the key may be worth a call of `resumePartial`.
  public func hasPartial(key: String, partition: String) -> Bool {
    guard mayHavePartials else { return false }
    adoptPartialsOnce()
    return partials.exists(key: key, partition: partition)
  }

  /// Resumes the largest partial file of this identity, for this worker alone. The file is read once for the digest, in
  /// pieces between other work.
  ///
  /// - Parameter maxBytes: the maximum length of the complete body. A file whose body is known to be larger is not
  ///   taken.
  public func resumePartial(
    _ identity: PartialRecord.Identity, maxBytes: Int64 = .max
  ) -> (partial: PartialRecord, spool: BodySpool)? {
    guard mode == .readWrite else { return nil }
    adoptPartialsOnce()
    let resumed = partials.resume(identity, maxBytes: maxBytes, now: now) { id, folder throws(FileError) in
      try BodySpool(resuming: id, in: folder, executor: executor, reservation: reservation(for: id))
    }
    guard let (partial, spool) = resumed else { return nil }
    let byteCount = spool.assumeIsolated { $0.byteCount }
    setReservation(session.folder?.allocated(byteCount) ?? byteCount, for: spool.id)
    guard partial.response.hasRest(after: byteCount) else {
      spool.assumeIsolated { $0.discard() }
      return nil
    }
    spool.assumeIsolated { $0.hashEarlierBytes() }
    return (partial, spool)
  }

  /// Removes the partial files of a response that is stored completely.
  public func removePartials(of identity: PartialRecord.Identity) {
    guard mayHavePartials else { return }
    partials.remove(of: identity)
    schedule.recordWrite()
  }

  /// Ends the spool after its file was stored or removed.
  ///
  /// - Returns: whether the file may be removed. Once the tier is closed, a file with a row is retained for the next
  ///   worker.
  func release(_ id: Int64) -> Bool {
    if partials.isListed(id) {
      if session.isClosed { return false }
      partials.unlist(id)
      schedule.recordWrite()
    }
    setReservation(nil, for: id)
    return true
  }

  /// Ends the spool and retains its file for resuming. Returns false if the file may not be retained.
  func retainForResume(_ id: Int64, byteCount: Int64) -> Bool {
    guard partials.retain(id, byteCount: byteCount, limit: budget.partialLimit) else { return false }
    if !session.isClosed { setReservation(nil, for: id) }
    return true
  }

  private func adoptPartialsOnce() {
    if partials.hasAdopted { return }
    detectDeadPeers()
    if !partials.hasAdopted { adoptPartials() }
  }

  func adoptPartials() { partials.adopt(swept: sweep?.instances ?? [], limit: budget.partialLimit, now: now) }

  func limitPartials() {
    try? session.withIndex { index throws(SQLiteError) in try partials.enforce(limit: budget.partialLimit, in: index) }
  }
}
