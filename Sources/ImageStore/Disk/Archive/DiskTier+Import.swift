/// Stores responses from an archive.
extension DiskTier {
  /// Whether a stored response takes the place of this one: it is as new or newer, and its file exists.
  public func hasNewer(than draft: StoredResponse) -> Bool {
    look(up: draft.key, partition: draft.partition, variant: draft.variant).contains {
      $0.varyKey == draft.varyKey && $0.responseTime >= draft.responseTime && hasFile(of: $0)
    }
  }

  /// Stores a response, unless `hasNewer` is true. No worker can store another one in between.
  ///
  /// - Parameter replacing: whether to store it also if the stored response is newer.
  /// - Returns: whether it was stored. If not, the caller must discard a spool.
  ///
  /// Throws as `store` does.
  public func storeImported(
    _ body: Body, as draft: StoredResponse, replacing: Bool
  ) throws(StoreError) -> Bool {
    _ = try session.writable()
    try session.withIndex { index throws(SQLiteError) in try index.beginWriting() }
    if !replacing, hasNewer(than: draft) { return false }
    _ = try store(body, as: draft, delivered: false)
    return true
  }

  /// The size on disk of a file of `byteCount` bytes.
  public func allocated(_ byteCount: Int64) throws(StoreError) -> Int64 {
    try session.usable().folder.allocated(byteCount)
  }
}
