internal import ImageStore
internal import LineRPC
internal import Platform

extension CacheCommand {
  static let verify = CacheCommand(
    name: "verify", summary: "read all files and compare their digests with the index",
    description: """
      Reads every stored image whole and compares its size and its SHA-256 with the index, then looks for
      files that the index does not know. Reports each missing or damaged image and each orphaned file. On
      a terminal, standard error shows the progress. Running workers go on meanwhile; what they evict or
      replace is not reported.

      --repair removes what is reported: an image whose file is missing or damaged is transferred again by
      the next load. Without it nothing is changed, except that the command takes the lock of the index
      for a moment to be sure that an image is missing. Orphaned files are left by workers that were
      killed; the next worker removes them, too.

      A line of JSON has the members finding (missing, size, damaged, unreadable or orphan), file, bytes,
      key, url, variant and partition of an image, found (the size of a file with another size), message
      (of a failure to read) and repaired. The last line has the member summary with images, bytes,
      missing, damaged, orphans and repaired.
      """,
    options: [.init("repair", "", .flag(\.command.repair), "remove missing and damaged images and orphaned files")]
      + OptionDefinition.filters,
    examples: [
      ("verify", "check everything"),
      ("verify --host img.example.com --repair", "check and repair the images of a host"),
    ],
    statuses: "0 everything is intact, 1 something was reported (repaired or not)",
    run: { options, output throws(ExitError) in
      let filter = try options.filter()
      var verification = try Verification(options, output)
      defer { verification.close() }
      try verification.examineEntries(matching: filter ?? .all)
      if filter == nil { try verification.examineOrphans() }
      return try verification.summarize()
    })
}

/// One run of `imageworker cache verify`.
private struct Verification {
  private var (images, missing, damaged, orphans, repaired) = (EntrySum(), 0, 0, 0, 0)
  private let options: Options
  private let output: CommandOutput
  private let repairs: Bool
  private let cache: OpenCache
  /// The cache as a peer of the workers. Opened when it is needed first: a cache without problems needs no peer.
  private var writer: OpenCache?
  private var mayWrite = true
  private var progress: Progress

  init(_ options: Options, _ output: CommandOutput) throws(ExitError) {
    (self.options, self.output, repairs) = (options, output, options.command.repair)
    cache = try OpenCache(options, for: .reading)
    let totals = try cache.perform { tier throws(StoreError) in try tier.listedTotals() }
    progress = Progress(images: totals.entries, bytes: totals.allocated)
    if repairs { writer = try OpenCache(options, for: .writing) }
  }

  /// Closes the reader first: the last writer then removes SQLite's log.
  func close() {
    cache.close()
    writer?.close()
  }

  mutating func examineEntries(matching filter: ClearFilter) throws(ExitError) {
    let now = time(nil)
    let listing = EntryListing(of: cache.tier, matching: filter, in: .key, reversed: false, now: now)
    while let page = try cache.nextPage(of: listing) {
      for entry in page {
        let state = try cache.perform { tier throws(StoreError) in try tier.examine(entry) }
        images += entry.sum
        progress.show(images)
        if state != .intact, try confirms(state, of: entry) { try report(state, of: entry) }
      }
    }
  }

  /// Whether a bad state is none that a worker causes by removing the entry at this moment.
  private mutating func confirms(_ state: FileState, of entry: CacheEntry) throws(ExitError) -> Bool {
    guard try cache.perform({ tier throws(StoreError) in try tier.isListed(entry) }) else { return false }
    if writer == nil, mayWrite {
      writer = try? OpenCache(options, for: .writing)
      // A directory that this user cannot write: what has just been read is the best knowledge.
      mayWrite = writer != nil
    }
    return try writer?.perform { tier throws(StoreError) in try tier.confirm(state, of: entry) } ?? true
  }

  private mutating func report(_ state: FileState, of entry: CacheEntry) throws(ExitError) {
    if state == .missing { missing += 1 } else { damaged += 1 }
    var isRepaired = false
    // A file that this user cannot read may be intact.
    if repairs, state.finding != "unreadable", let writer {
      try writer.perform { tier throws(StoreError) in try tier.discard(entry) }
      isRepaired = true
    }
    try report("\(state.text): \(entry.name), \(entry.file)", isRepaired) { writer in
      writer.member("finding", state.finding)
      if case .wrongSize(let found) = state { writer.member("found", found) }
      if case .unreadable(let message) = state { writer.member("message", message) }
      writer.member("file", entry.file)
      writer.member("bytes", entry.content.byteCount)
      writer.member("key", entry.key)
      writer.member("url", entry.url)
      if !entry.variant.isEmpty { writer.member("variant", entry.variant) }
      if !entry.partition.isEmpty { writer.member("partition", entry.partition) }
    }
  }

  mutating func examineOrphans() throws(ExitError) {
    for shard in 0..<DiskTier.shardCount {
      let orphans = try cache.perform { tier throws(StoreError) in try tier.orphans(inShard: shard) }
      for orphan in orphans { try report(orphan) }
    }
    if repairs, orphans > 0, let writer { try writer.perform { tier throws(StoreError) in tier.sweepOrphans() } }
  }

  private mutating func report(_ orphan: DiskTier.OrphanFile) throws(ExitError) {
    orphans += 1
    let kind = orphan.isTemporary ? "orphaned temporary file" : "orphaned file"
    let size = Quantity.text(size: orphan.byteCount)
    try report("\(kind): \(orphan.path), \(size)", repairs) { writer in
      writer.member("finding", constant: "orphan")
      writer.member("file", orphan.path)
      writer.member("bytes", orphan.byteCount)
    }
  }

  private mutating func report(
    _ finding: String, _ isRepaired: Bool, _ members: (inout JSONWriter) -> Void
  ) throws(ExitError) {
    if isRepaired { repaired += 1 }
    progress.clear()
    try output.write(finding + (isRepaired ? ", removed" : "")) { writer in
      members(&writer)
      writer.member("repaired", isRepaired)
    }
    try output.finish()
  }

  /// Returns whether nothing was reported.
  mutating func summarize() throws(ExitError) -> Bool {
    progress.clear()
    let isClean = missing + damaged + orphans == 0
    let findings = "\(missing) missing, \(damaged) damaged, \(Quantity.text(orphans, of: "orphaned file"))"
    let repairs = repaired > 0 ? "; \(repaired) removed" : ""
    try output.write("\(images.text): \(isClean ? "all intact" : findings + repairs)") { writer in
      writer.object("summary") { writer in
        writer.member("images", images.entries)
        writer.member("bytes", images.bytes)
        writer.member("missing", missing)
        writer.member("damaged", damaged)
        writer.member("orphans", orphans)
        writer.member("repaired", repaired)
      }
    }
    return isClean
  }
}

/// The progress on standard error, if that is a terminal: `45 %, 123 of 400 images`.
private struct Progress {
  /// The number and the bytes on disk of all images.
  let images: Int
  let bytes: Int64
  private let isShown = isatty(STDERR_FILENO) != 0
  private var nextUpdate = Instant.now
  private var isVisible = false

  init(images: Int, bytes: Int64) { (self.images, self.bytes) = (images, bytes) }

  /// Shows the progress, at most ten times a second. Workers may store more images meanwhile.
  mutating func show(_ done: EntrySum) {
    guard isShown, nextUpdate <= .now else { return }
    nextUpdate = .now + .milliseconds(100)
    isVisible = true
    let percent = bytes > 0 ? min(100, Int(100 * Double(done.allocated) / Double(bytes))) : 100
    writeToStandardError(Array("\r\(percent) %, \(done.entries) of \(max(images, done.entries)) images".utf8))
  }

  /// Removes the progress, so that a line can be written in its place.
  mutating func clear() {
    if isVisible { writeToStandardError(Array("\r\u{1B}[K".utf8)) }
    isVisible = false
  }
}

extension FileState {
  /// The name in a line of JSON.
  fileprivate var finding: String {
    switch self {
    case .intact: "intact"
    case .missing: "missing"
    case .wrongSize: "size"
    case .damaged: "damaged"
    case .unreadable: "unreadable"
    }
  }

  fileprivate var text: String {
    switch self {
    case .intact, .missing: finding
    case .wrongSize(let found): "damaged (has \(found) bytes)"
    case .damaged: "damaged (another digest)"
    case .unreadable(let message): "unreadable (\(message))"
    }
  }
}
