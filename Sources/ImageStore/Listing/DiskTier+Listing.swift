/// The files of the index that are no entries.
public struct OtherFiles: Sendable, Equatable {
  public struct Sum: Sendable, Equatable {
    public var count = 0
    public var allocated: Int64 = 0
  }

  /// Files of removed entries that are deleted when the 60 s after their last delivery end.
  public var pendingDeletions = Sum()
  /// The beginnings of interrupted transfers.
  public var partials = Sum()
}

/// Reads of a read-only tier for the commands of `imageworker cache`, besides pages of entries.
extension DiskTier {
  /// The number of entries, and the allocated bytes of all files in the index.
  public func listedTotals() throws(StoreError) -> (entries: Int, allocated: Int64) {
    let totals = try session.withSettledIndex { index throws(SQLiteError) in try index.totals() }
    return (totals.entries, totals.bytes)
  }

  public func otherFiles() throws(StoreError) -> OtherFiles {
    try session.withSettledIndex { index throws(SQLiteError) in try index.otherFiles() }
  }

  /// Whether the entry is still stored.
  public func isListed(_ entry: CacheEntry) throws(StoreError) -> Bool {
    try session.withSettledIndex { index throws(SQLiteError) in try index.record(entry.id) != nil }
  }

  /// The entries that are stored under a key.
  public struct KeyInspection: Sendable {
    public struct Stored: Sendable {
      public var response: StoredResponse
      public var usage: Usage
      /// Whether its file exists and has its size.
      public var hasFile: Bool
      /// Relative to the folder of the namespace.
      public var file: String { response.file }
    }

    /// The responses of the partition: originals, then variants, each with the newest first.
    public var stored: [Stored]
    /// The bytes of an interrupted transfer that a load may resume.
    public var partialBytes: Int64?
    /// The number of responses for other credentials.
    public var storedElsewhere: Int
  }

  /// Inspects a key without side effects.
  public func inspect(key: String, partition: String) throws(StoreError) -> KeyInspection {
    let opened = try session.usable()
    var inspection = try session.withSettledIndex { index throws(SQLiteError) in
      var stored: [KeyInspection.Stored] = []
      for variant in [""] + (try index.variantNames(key: key, partition: partition)) {
        let found = try index.find(key: key, partition: partition, variant: variant, boot: opened.bootNumber)
        for response in found.sorted(by: { ($0.responseTime, $0.id) > ($1.responseTime, $1.id) }) {
          let usage = try index.usage(of: response.id) ?? (lastUse: 0, uses: 0)
          stored.append(
            KeyInspection.Stored(
              response: response,
              usage: Usage(lastUse: usage.lastUse > 0 ? usage.lastUse : nil, count: usage.uses), hasFile: false))
        }
      }
      return KeyInspection(
        stored: stored,
        partialBytes: index.version >= 2 ? try index.partialBytes(key: key, partition: partition) : nil,
        storedElsewhere: try index.count(key: key, outsideOf: partition))
    }
    for number in inspection.stored.indices {
      let response = inspection.stored[number].response
      let status = try? environment.files.status(response.file, in: opened.folder.descriptor)
      inspection.stored[number].hasFile = status.map { Int64($0.byteCount) } == response.byteCount
    }
    return inspection
  }
}
