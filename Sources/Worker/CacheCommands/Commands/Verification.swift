internal import ImageStore
internal import LineRPC
internal import Platform

/// One run of `imageworker cache verify`.
struct Verification {
  struct Counts: Equatable {
    var images = EntrySum()
    var missing = 0
    var damaged = 0
    var orphans = 0
    var repaired = 0

    var isClean: Bool { missing + damaged + orphans == 0 }
  }

  private(set) var counts = Counts()
  private let options: Options
  private let output: CommandOutput
  private let repairs: Bool
  private let cache: OpenCache
  /// The cache as a peer of the workers. Opened when it is needed first: a cache without problems needs no peer.
  private var writer: OpenCache?
  private var mayWrite = true
  private var progress: ProgressBar

  init(_ arguments: CommandArguments, _ output: CommandOutput) throws(CommandError) {
    (options, self.output, repairs) = (arguments.worker, output, arguments.has("repair"))
    cache = try OpenCache(options, for: .reading)
    let totals = try cache.perform { tier throws(StoreError) in try tier.listedTotals() }
    progress = ProgressBar(images: totals.entries, bytes: totals.allocated)
    if repairs { writer = try OpenCache(options, for: .writing) }
  }

  /// Closes the reader first: the last writer then removes SQLite's log.
  func close() {
    cache.close()
    writer?.close()
  }

  mutating func examineEntries(matching filter: ClearFilter) throws(CommandError) {
    let listing = try cache.listing(matching: filter, now: time(nil))
    while let page = try cache.nextPage(of: listing) {
      for entry in page {
        let state = try cache.perform { tier throws(StoreError) in try tier.examine(entry) }
        counts.images.add(entry)
        progress.advance(to: counts.images.entries, counts.images.allocated)
        if state != .intact, try confirms(state, of: entry) { try report(state, of: entry) }
      }
    }
  }

  /// Whether a bad state is none that a worker causes by removing the entry at this moment.
  private mutating func confirms(_ state: FileState, of entry: CacheEntry) throws(CommandError) -> Bool {
    guard try cache.perform({ tier throws(StoreError) in try tier.isListed(entry) }) else { return false }
    if writer == nil, mayWrite {
      writer = try? OpenCache(options, for: .writing)
      // A directory that this user cannot write: what has just been read is the best knowledge.
      mayWrite = writer != nil
    }
    return try writer?.perform { tier throws(StoreError) in try tier.confirm(state, of: entry) } ?? true
  }

  private mutating func report(_ state: FileState, of entry: CacheEntry) throws(CommandError) {
    if state == .missing { counts.missing += 1 } else { counts.damaged += 1 }
    var isRepaired = false
    if repairs, state.isRepairable, let writer {
      try writer.perform { tier throws(StoreError) in try tier.discard(entry) }
      isRepaired = true
      counts.repaired += 1
    }
    progress.clear()
    switch output.format {
    case .text:
      try output.line("\(state.text): \(EntryText.name(of: entry)), \(entry.file)\(isRepaired ? ", removed" : "")")
      try output.finish()
    case .json:
      try output.object { $0.members(of: state, entry, isRepaired: isRepaired) }
    }
  }

  mutating func examineOrphans() throws(CommandError) {
    for shard in 0..<DiskTier.shardCount {
      let orphans = try cache.perform { tier throws(StoreError) in try tier.orphans(inShard: shard) }
      for orphan in orphans { try report(orphan) }
    }
    if repairs, counts.orphans > 0, let writer {
      try writer.perform { tier throws(StoreError) in tier.sweepOrphans() }
    }
  }

  private mutating func report(_ orphan: DiskTier.OrphanFile) throws(CommandError) {
    counts.orphans += 1
    if repairs { counts.repaired += 1 }
    progress.clear()
    switch output.format {
    case .text:
      let kind = orphan.isTemporary ? "orphaned temporary file" : "orphaned file"
      try output.line(
        "\(kind): \(orphan.path), \(Quantities.size(orphan.byteCount))\(repairs ? ", removed" : "")")
      try output.finish()
    case .json:
      try output.object { writer in
        writer.member("finding", constant: "orphan")
        writer.member("file", orphan.path)
        writer.member("bytes", orphan.byteCount)
        writer.member("repaired", repairs)
      }
    }
  }

  mutating func endProgress() { progress.clear() }

  func summarize() throws(CommandError) {
    let counts = counts
    switch output.format {
    case .text:
      let findings = [
        "\(counts.missing) missing", "\(counts.damaged) damaged",
        Quantities.count(counts.orphans, "orphaned file", "orphaned files"),
      ]
      let repaired = counts.repaired > 0 ? "; \(counts.repaired) removed" : ""
      try output.line(
        counts.isClean
          ? "\(counts.images.text): all intact"
          : "\(counts.images.text): \(findings.joined(separator: ", "))\(repaired)")
    case .json:
      try output.object { writer in
        writer.object("summary") { writer in
          writer.member("images", counts.images.entries)
          writer.member("bytes", counts.images.bytes)
          writer.member("missing", counts.missing)
          writer.member("damaged", counts.damaged)
          writer.member("orphans", counts.orphans)
          writer.member("repaired", counts.repaired)
        }
      }
    }
  }
}

extension FileState {
  /// Whether the entry can be removed for it. A file that this user cannot read may be intact.
  var isRepairable: Bool { if case .unreadable = self { false } else { true } }

  var text: String {
    switch self {
    case .intact: "intact"
    case .missing: "missing"
    case .wrongSize(let found): "damaged (has \(found) bytes)"
    case .damaged: "damaged (another digest)"
    case .unreadable(let message): "unreadable (\(message))"
    }
  }
}

extension JSONWriter {
  fileprivate mutating func members(of state: FileState, _ entry: CacheEntry, isRepaired: Bool) {
    switch state {
    case .intact: member("finding", constant: "intact")
    case .missing: member("finding", constant: "missing")
    case .wrongSize(let found):
      member("finding", constant: "size")
      member("found", found)
    case .damaged: member("finding", constant: "damaged")
    case .unreadable(let message):
      member("finding", constant: "unreadable")
      member("message", message)
    }
    member("file", entry.file)
    member("bytes", entry.byteCount)
    member("key", entry.key)
    member("url", entry.url)
    if !entry.variant.isEmpty { member("variant", entry.variant) }
    if !entry.partition.isEmpty { member("partition", entry.partition) }
    member("repaired", isRepaired)
  }
}
