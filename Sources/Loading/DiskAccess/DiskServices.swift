internal import HTTPCaching
internal import ImageCodec
public import ImageStore
internal import Platform
public import Threads
internal import Tracing

/// The disk tiers, the folders for temporary files, and the thread that they share. Results are delivered on the
/// loading thread.
public final class DiskServices: Sendable {
  /// The absolute path of the cache directory.
  public let directory: String
  public let executor: ThreadExecutor
  /// The read-write tier; nil with `--disk-limit 0`.
  public let tier: DiskTier?
  /// The read-only tiers, which are looked up in this order if `tier` has no entry.
  let readOnlyTiers: [DiskTier]
  let scratch: ScratchFolder
  let pixels: PixelFolder
  let hostFiles = ThreadPool(name: "host files", limit: 4)
  /// The current time in Unix seconds.
  let now: @Sendable () -> Int
  private let tracing = Locked(Tracing())

  private struct Tracing {
    var recorder: TraceRecorder?
    /// The number of evictions at the last batch that was recorded.
    var evictions: Int?
  }

  public init(
    directory: String, executor: ThreadExecutor, tier: DiskTier?, readOnlyTiers: [DiskTier], scratch: ScratchFolder,
    pixels: PixelFolder, now: @escaping @Sendable () -> Int
  ) {
    (self.directory, self.executor, self.now) = (directory, executor, now)
    (self.tier, self.readOnlyTiers, self.scratch, self.pixels) = (tier, readOnlyTiers, scratch, pixels)
  }

  /// Opens the tiers and schedules their maintenance. Blocks.
  ///
  /// - Throws: `unusable` if a directory cannot be used.
  public func open() throws(StoreError) {
    let tiers = [tier].compactMap(\.self) + readOnlyTiers
    let result = Locked<Result<Void, StoreError>?>(nil)
    executor.run {
      let outcome = Result { () throws(StoreError) in
        for tier in tiers {
          try tier.assumeIsolatedThrowing { tier throws(StoreError) in try tier.open() }
        }
      }
      result.withLock { $0 = outcome }
      result.notify()
    }
    try result.wait { $0 }!.get()
    installMaintenance(on: executor, tiers: tiers, scratch: scratch) { [weak self] maintenance in
      self.map { $0.trace(maintenance) } ?? maintenance()
    }
    executor.run { self.pixels.assumeIsolated { $0.removeDead() } }
  }

  /// Writes pending changes and closes the directories. Blocks; must be the last call.
  public func close() {
    executor.run {
      for tier in [self.tier].compactMap(\.self) + self.readOnlyTiers { tier.assumeIsolated { $0.close() } }
      self.scratch.assumeIsolated { $0.close() }
      self.pixels.assumeIsolated { $0.close() }
    }
    executor.stop()
  }

  /// Runs `work` on the disk thread and passes its result to `completion` on the loading thread.
  ///
  /// - Parameter onHostFiles: whether to run it on a thread for files of the host instead: their file system may be
  ///   slow, or not answer, and no other work waits for it.
  @LoadingActor
  func perform<Result: Sendable>(
    onHostFiles: Bool = false, _ work: @escaping @Sendable () -> Result,
    then completion: @escaping @LoadingActor @Sendable (Result) -> Void
  ) {
    let both: @Sendable () -> Void = {
      let result = work()
      LoadingActor.run { completion(result) }
    }
    if onHostFiles { hostFiles.run(both) } else { executor.run(both) }
  }

  /// As `perform` without a label, for work that a trace shows.
  @LoadingActor
  func perform<Result: Sendable>(
    _ label: TraceLabel, _ work: @escaping @Sendable () -> Result,
    then completion: @escaping @LoadingActor @Sendable (Result) -> Void
  ) {
    perform(
      {
        guard let recorder = self.recorder else { return work() }
        let start = Instant.now
        let result = work()
        recorder.diskWorked(label, from: start, to: .now)
        return result
      }, then: completion)
  }

  /// Records the work of the disk thread, until it is set to nil. May be set on any thread.
  var recorder: TraceRecorder? {
    get { tracing.withLock { $0.recorder } }
    set { tracing.withLock { $0 = Tracing(recorder: newValue) } }
  }

  /// Runs the maintenance at the end of a batch and records both, if they were long enough for other work to wait.
  private func trace(_ maintenance: () -> Instant?) -> Instant? {
    guard let recorder else { return maintenance() }
    let start = Instant.now
    let next = maintenance()
    let end = Instant.now
    recorder.diskWorked(.maintenance, from: start, to: end)
    recorder.diskWorked(.batch, from: executor.batchStart, to: end)
    let evictions = tier?.assumeIsolated { $0.evictionCount } ?? 0
    let new = tracing.withLock { state in
      defer { state.evictions = evictions }
      return evictions - (state.evictions ?? evictions)
    }
    if new > 0 { recorder.evictedFromDisk(new) }
    return next
  }

  /// The result of a disk lookup.
  struct Found: Sendable {
    /// The candidates, those of the read-write tier first.
    var candidates: [Candidate]
    /// Whether there is a partial body of an earlier load. Checked only if there are no candidates.
    var hasPartial: Bool
  }

  /// Looks up the named variants and the original of a key on disk.
  @LoadingActor
  func look(
    up key: String, partition: String, variants: Set<String>,
    then completion: @escaping @LoadingActor @Sendable (Found) -> Void
  ) {
    perform(
      .lookUp,
      {
        let originals = self.candidates(for: key, partition)
        let found = variants.filter { !$0.isEmpty }.flatMap { self.candidates(for: key, partition, variant: $0) }
        let candidates = found.isEmpty ? originals : Candidate.merging(found, originals)
        let hasPartial =
          candidates.isEmpty
          && self.tier?.assumeIsolated { $0.hasPartial(key: key, partition: partition) } ?? false
        return Found(candidates: candidates, hasPartial: hasPartial)
      }, then: completion)
  }

  /// Performs a delivery.
  @LoadingActor
  func deliver(
    _ delivery: DeliveryPlan, from source: DeliveryPlan.Source,
    then completion:
      @escaping @LoadingActor @Sendable (Result<DeliveryPlan.DeliveredContent, DeliveryPlan.Failure>) -> Void
  ) {
    perform(
      .deliver,
      {
        var delivery = delivery
        // A response that has been replaced or cleared since the lookup must not enter the memory tier.
        if delivery.wantsBytes, case .stored(let response, let tier) = source {
          delivery.wantsBytes = tier.assumeIsolated { $0.contains(response) }
        }
        return delivery.perform(on: source, scratch: self.scratch, now: self.now())
      }, then: completion)
  }

  /// Marks a path as delivered now, for a path that the host receives later than it was prepared. May be called from
  /// any thread.
  func markDelivered(_ path: String) {
    executor.run {
      let now = self.now()
      self.scratch.assumeIsolated { $0.markDelivered(path, at: now) }
      self.tier?.assumeIsolated { $0.markDelivered(path: path, at: now) }
    }
  }

  func candidates(for key: String, _ partition: String, variant: String = "") -> [Candidate] {
    var found: [Candidate] = []
    if let tier {
      found = tier.assumeIsolated { $0.look(up: key, partition: partition, variant: variant) }
        .map { Candidate(response: $0, bytes: nil, location: .disk) }
    }
    for (number, tier) in readOnlyTiers.enumerated() where found.isEmpty {
      found = tier.assumeIsolated { $0.look(up: key, partition: partition, variant: variant) }
        .map { Candidate(response: $0, bytes: nil, location: .readOnly(number)) }
    }
    return found
  }

  /// The part of a `query` result that comes from the disk.
  struct Inspection: Sendable {
    var candidates: [Candidate]
    /// The usage of the first candidate.
    var usage: DiskTier.Usage?
    /// The canonical transforms whose results are stored in the tier of the candidates.
    var transforms: [String] = []
  }

  /// Inspects a key. Must run on the disk thread.
  func inspect(_ key: String, _ partition: String, _ variant: String) -> Inspection {
    let found = candidates(for: key, partition, variant: variant)
    // Only the path of a file that exists may be reported.
    var inspection = Inspection(
      candidates: found.filter { candidate in
        tier(of: candidate)?.assumeIsolated { $0.hasFile(of: candidate.response) } ?? false
      })
    let first = inspection.candidates.first
    guard let tier = first.flatMap({ tier(of: $0) }) ?? tier else { return inspection }
    return tier.assumeIsolated { tier in
      if let first { inspection.usage = tier.usage(of: first.response) }
      inspection.transforms = tier.variants(of: key, partition: partition)
      return inspection
    }
  }

  /// The tier that has the candidate's file; nil if it has none.
  func tier(of candidate: Candidate) -> DiskTier? { tier(of: candidate.response, in: candidate.location) }

  func tier(of response: StoredResponse, in location: Candidate.Location) -> DiskTier? {
    switch location {
    case .memory: response.isOnDisk ? tier : nil
    case .disk: tier
    case .readOnly(let number): readOnlyTiers[number]
    case .scratch: nil
    }
  }

  /// The candidate without its bytes, for work that may wait: its file, if it has one, is read instead.
  func withoutBytes(_ candidate: Candidate) -> Candidate {
    var candidate = candidate
    candidate.bytes = nil
    if candidate.location == .memory, candidate.response.isOnDisk, tier != nil { candidate.location = .disk }
    return candidate
  }
}

extension StoredResponse {
  /// Whether the response was written to disk. Others have no id.
  var isOnDisk: Bool { id > 0 }
}

/// Bodies in transit between the transport, the tiers and the decoders.
extension DiskServices {
  /// Makes the sink for a transfer's body that is too large for memory.
  ///
  /// - Parameters:
  ///   - keeping: whether the body may be cached.
  ///   - partial: the record under which the file may stay if the transfer is interrupted.
  ///   - spooled: the part of the body that is already on disk.
  func makeSink(
    keeping: Bool, expected: Int64?, of partial: PartialRecord? = nil, continuing spooled: SpooledBody? = nil,
    onRoom: @escaping @Sendable () -> Void
  ) -> BodySink {
    BodySink(
      executor: executor, continuing: spooled,
      makeCacheSpool: keeping ? tier.map { makeSpool(in: $0, expected: expected, of: partial) } : nil,
      makeScratchSpool: makeScratchSpool, onRoom: onRoom)
  }

  func makeSpool(in tier: DiskTier, expected: Int64?, of partial: PartialRecord? = nil) -> BodySink.MakeSpool {
    { () throws(StoreError) in
      try tier.assumeIsolatedThrowing { tier throws(StoreError) in
        try tier.makeSpool(expected: expected, of: partial)
      }
    }
  }

  var makeScratchSpool: BodySink.MakeSpool {
    { [scratch] () throws(StoreError) in
      try scratch.assumeIsolatedThrowing { scratch throws(StoreError) in try scratch.makeSpool() }
    }
  }

  /// Discards a body that is not needed. May be called from any thread.
  func discard(_ body: Download.Body) {
    guard case .spool = body else { return }
    executor.run { self.discardNow(body) }
  }

  /// Discards a body. Must run on the disk thread.
  func discardNow(_ body: Download.Body) {
    if case .spool(let body) = body { body.spool.drop() }
  }

  /// Removes the output of a decoder, written or not. May be called from any thread.
  func discard(_ output: DecodeTask.Output) {
    switch output {
    case .check, .placeholder, .facts: break
    case .encoded(let path), .preview(let path, _): executor.run { remove(fileAt: path) }
    case .renditions(let set, let path): if !set.renditions.isEmpty { executor.run { remove(fileAt: path) } }
    case .pixels(let path): executor.run { self.pixels.assumeIsolated { $0.drop(path) } }
    }
  }

  /// Retains a body for a later load, or discards it if it cannot stay. May be called from any thread.
  func retainForResume(_ body: Download.Body) {
    guard case .spool(let spooled) = body else { return }
    executor.run { spooled.spool.dropUnlessResumable() }
  }

  /// Writes the first bytes of a body to a file for a later load, if it may stay. May be called from any thread.
  func retainForResume(_ bytes: [UInt8], as partial: PartialRecord) {
    guard let tier else { return }
    executor.run {
      let makeSpool = { () throws(StoreError) -> BodySpool in
        try tier.assumeIsolatedThrowing { tier throws(StoreError) in try tier.makeSpool(of: partial) }
      }
      guard let spool = try? makeSpool() else { return }
      // Without space for the bytes, a later load starts from the beginning.
      if (try? spool.add(bytes)) == nil { spool.drop() } else { spool.dropUnlessResumable() }
    }
  }

  /// Returns the partial body of an earlier load. Must run on the disk thread.
  ///
  /// - Parameters:
  ///   - maxBytes: the maximum size of the whole body.
  ///   - acceptsAnything: whether content that does not begin like an image is accepted.
  ///   - readsHeader: whether to read the header of the image.
  func resumePartial(
    _ identity: PartialRecord.Identity, maxBytes: Int64, acceptsAnything: Bool, readingHeader readsHeader: Bool
  ) -> PartialBody? {
    guard let tier, let (partial, spool) = tier.assumeIsolated({ $0.resumePartial(identity, maxBytes: maxBytes) })
    else { return nil }
    let prefix = (try? spool.bytes(from: 0, count: Recognition.prefixLength)) ?? []
    var format: ImageFormat?
    if case .image(let found) = Recognition(prefix: prefix, isComplete: false) { format = found }
    guard format != nil || acceptsAnything else {
      spool.drop()
      return nil
    }
    var header: ImageHeader?
    if readsHeader, let format {
      let length = partial.response.completeLength.map(Int.init)
      if case .complete(let found) = HeaderPrefix.read(SpoolSource(spool: spool), ofLength: length, format: format) {
        header = found
      }
    }
    return PartialBody(
      response: partial.response, body: .spool(SpooledBody(spool: spool, isScratch: false)),
      byteCount: spool.length, format: format, scans: format == .jpeg ? ScanCounter(countingIn: spool) : nil,
      header: header)
  }

  /// Turns a spooled body into a scratch file for decoders; a delivery marks it for the host.
  func keepScratch(_ body: SpooledBody, format: ImageFormat?) throws(StoreError) -> String {
    try scratch.assumeIsolatedThrowing { scratch throws(StoreError) in
      try scratch.store(.spool(body.spool), format: format, isSource: true)
    }
  }
}
