internal import Threads

/// Keeps the promise that a delivered path remains valid for 60 s. See `RetentionTracker`.
extension DiskTier {
  /// Records that an image was delivered at `time` (Unix seconds), which counts as a use. If it was delivered by path,
  /// its file is kept for 60 s.
  ///
  /// The index is updated seconds later, when uses are flushed.
  public func markDelivered(_ id: Int64, at time: Int, byPath: Bool = true) {
    guard mode == .readWrite else { return }
    recordUse(of: id, RetentionTracker.Use(at: time, isDelivery: byPath))
  }

  /// Records another delivery of a path that `absolutePath` returned; its use was counted before. Ignores any other
  /// path.
  public func markDelivered(path: String, at time: Int) {
    guard path.hasPrefix(directory + "/"), let name = path.split(separator: "/").last,
      let file = FileName.parse(String(name))
    else { return }
    recordUse(of: file.id, RetentionTracker.Use(at: time, times: 0))
  }

  private func recordUse(of id: Int64, _ use: RetentionTracker.Use) {
    // Announce before the file is checked: peers see the use in the index only later.
    deliveries.announce(id, at: use.at)
    retention.record(id, use)
    schedule.recordUse()
  }

  /// The path of a stored response, to be delivered now. Callable from any thread, without waiting for the executor.
  /// Keeps the file for 60 s and counts as a use. Nil if the file is missing, has another size, or must be verified
  /// first.
  public nonisolated func deliverPath(of response: StoredResponse) -> String? {
    if verification.withLock({ $0 }) == .always { return nil }
    recordUse(of: response)
    let path = absolutePath(of: response)
    return (try? environment.files.status(path))?.byteCount == response.content.byteCount ? path : nil
  }

  /// Records a use of an image that was delivered from another tier. Callable from any thread.
  public nonisolated func recordUse(of response: StoredResponse) {
    guard mode == .readWrite, deliveries.record(response.id, at: environment.now()) else { return }
    // Wake the executor, which may be idle for long: maintenance runs after each batch.
    executor.run {}
  }

  /// Keeps the file of a response that a caller is about to read; counts as a use. `removeReader` must follow. Files
  /// with readers count against the limit: if they fill the tier, nothing more is stored.
  ///
  /// - Returns: false, without a reader, if the file does not match the response.
  public func addReader(of response: StoredResponse) -> Bool {
    retention.addReader(of: response.id)
    markDelivered(response.id, at: now, byPath: false)
    if check(response) { return true }
    removeReader(of: response.id)
    return false
  }

  public func removeReader(of id: Int64) {
    // The eviction scan may have skipped the file.
    if retention.removeReader(of: id) { budget.resetCursor() }
  }

  /// When the file may be deleted; nil if it may be deleted now.
  func retentionEnd(of record: FileRecord, now: Int) -> Int? {
    let peerDelivery = hasPeers ? peerTable?.recentDelivery(of: record.id, now: now) : nil
    return retention.retentionEnd(of: record, peerDelivery: peerDelivery, hasPeers: hasPeers, now: now)
  }

  /// Deletes the file unless it is retained, or another thread or a peer is about to deliver it.
  func removeUnlessRetained(_ id: Int64, _ file: String, now: Int) -> Bool {
    !retention.hasReaders(id) && deliveries.unlessDelivered(id, now: now) { session.folder?.remove(file) }
  }

  /// Moves the deliveries by other threads into `retention`.
  func drainDeliveries() { for (id, use) in deliveries.drain() { recordUse(of: id, use) } }

  /// Writes the uses and verified digests to the index.
  func flushUses() {
    schedule.flushBy = nil
    drainDeliveries()
    guard mode == .readWrite, !retention.unwritten.isEmpty else { return }
    try? session.withIndex { index throws(SQLiteError) in try flushUses(to: index) }
    schedule.recordWrite()
  }

  func flushUses(to index: DiskIndex) throws(SQLiteError) {
    let unwritten = retention.drain()
    for (id, use) in unwritten.uses { try index.touch(id, use) }
    for id in unwritten.verified { try index.markVerified(id) }
  }
}
