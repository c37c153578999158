internal import HTTPCaching
internal import ImageCodec
public import ImageStore
public import Threads

/// The tiers on disk and the thread they share. What is asked of it here is answered on the loading thread.
public final class DiskServices: Sendable {
  /// The cache directory, absolute.
  public let directory: String
  public let executor: ThreadExecutor
  /// Nil with `--disk-limit 0`.
  public let tier: DiskTier?
  /// Looked in, in this order, when `tier` has nothing; never written.
  let readOnlyTiers: [DiskTier]
  let scratch: ScratchFolder
  let pixels: PixelFolder
  /// Unix seconds.
  let now: @Sendable () -> Int

  public init(
    directory: String, executor: ThreadExecutor, tier: DiskTier?, readOnlyTiers: [DiskTier], scratch: ScratchFolder,
    pixels: PixelFolder, now: @escaping @Sendable () -> Int
  ) {
    self.directory = directory
    self.executor = executor
    self.tier = tier
    self.readOnlyTiers = readOnlyTiers
    self.scratch = scratch
    self.pixels = pixels
    self.now = now
  }

  /// Opens the tiers and has them look after themselves from now on. Blocks.
  ///
  /// - Throws: `unusable`, when a directory cannot be used.
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
    runMaintenance(on: executor, tiers: tiers, scratch: scratch)
    executor.run { self.pixels.assumeIsolated { $0.removeDead() } }
  }

  /// Writes what is pending and lets go of the directories. Blocks; nothing may be asked of the storage afterwards.
  public func close() {
    executor.run {
      for tier in [self.tier].compactMap(\.self) + self.readOnlyTiers { tier.assumeIsolated { $0.close() } }
      self.scratch.assumeIsolated { $0.close() }
      self.pixels.assumeIsolated { $0.close() }
    }
    executor.stop()
  }

  /// Runs `work` on the disk's thread and hands its result to `completion` on the loading thread.
  func perform<Result: Sendable>(
    _ work: @escaping @Sendable () -> Result, then completion: @escaping @LoadingActor @Sendable (Result) -> Void
  ) {
    executor.run {
      let result = work()
      LoadingActor.run { completion(result) }
    }
  }

  /// What the disk has for a key.
  struct Found: Sendable {
    /// The writable tier's first.
    var candidates: [Candidate]
    /// Whether there is what an earlier load has left. Looked for only where nothing is stored.
    var hasPartial: Bool
  }

  /// Looks for what the disk has for a key: the variant of that name, and the original.
  func look(
    up key: String, partition: String, variant: String,
    then completion: @escaping @LoadingActor @Sendable (Found) -> Void
  ) {
    perform(
      {
        let originals = self.candidates(for: key, partition)
        let variants = variant.isEmpty ? [] : self.candidates(for: key, partition, variant: variant)
        let candidates = Candidate.merging(variants, originals)
        let hasPartial =
          candidates.isEmpty
          && self.tier?.assumeIsolated { $0.hasPartial(key: key, partition: partition) } ?? false
        return Found(candidates: candidates, hasPartial: hasPartial)
      }, then: completion)
  }

  /// Whether the file of a candidate exists, so that its path can be told. On the disk's thread.
  private func hasFile(of candidate: Candidate) -> Bool {
    tier(of: candidate)?.assumeIsolated { $0.hasFile(of: candidate.response) } ?? false
  }

  /// Carries out a delivery.
  func deliver(
    _ delivery: DeliveryPlan, from source: DeliveryPlan.Source,
    then completion: @escaping @LoadingActor @Sendable (Result<DeliveryPlan.DeliveredContent, DeliveryPlan.Failure>) -> Void
  ) {
    perform(
      {
        var delivery = delivery
        // What has been replaced or cleared since it was found is for this load alone.
        if delivery.wantsBytes, case .stored(let response, _) = source { delivery.wantsBytes = self.finds(response) }
        return delivery.perform(on: source, scratch: self.scratch, now: self.now())
      }, then: completion)
  }

  /// Whether a look-up gives the response, on the disk's thread.
  private func finds(_ response: StoredResponse) -> Bool {
    candidates(for: response.key, response.partition, variant: response.variant)
      .contains { $0.response.id == response.id && $0.response.digest == response.digest }
  }

  /// Notes that a path that was delivered is given to a host only now, from any thread.
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
        .map { Candidate(response: $0, bytes: nil, place: .disk) }
    }
    for (number, tier) in readOnlyTiers.enumerated() where found.isEmpty {
      found = tier.assumeIsolated { $0.look(up: key, partition: partition, variant: variant) }
        .map { Candidate(response: $0, bytes: nil, place: .readOnly(number)) }
    }
    return found
  }

  /// What `query` tells of a key.
  struct Inspection: Sendable {
    var candidates: [Candidate]
    /// Of the first one.
    var usage: DiskTier.Usage?
    /// The canonical transforms of which results lie where the candidates do.
    var transforms: [String] = []
  }

  /// Looks what there is of a key, on the disk's thread.
  func inspect(_ key: String, _ partition: String, _ variant: String) -> Inspection {
    let found = candidates(for: key, partition, variant: variant)
    var inspection = Inspection(candidates: found.filter(hasFile))
    let first = inspection.candidates.first
    guard let tier = first.flatMap({ tier(of: $0) }) ?? tier else { return inspection }
    return tier.assumeIsolated { tier in
      if let first { inspection.usage = tier.usage(of: first.response) }
      inspection.transforms = tier.variants(of: key, partition: partition)
      return inspection
    }
  }

  /// The tier that holds a candidate's file; nil when it lies in memory only.
  func tier(of candidate: Candidate) -> DiskTier? { tier(of: candidate.response, in: candidate.place) }

  func tier(of response: StoredResponse, in place: Candidate.Place) -> DiskTier? {
    switch place {
    case .memory: response.isOnDisk ? tier : nil
    case .disk: tier
    case .readOnly(let number): readOnlyTiers[number]
    case .scratch: nil
    }
  }
}

extension StoredResponse {
  /// Responses that were never written have no number.
  var isOnDisk: Bool { id > 0 }
}

/// Bodies on their way.
extension DiskServices {
  /// Where the body of a transfer goes that is too large for memory.
  ///
  /// - Parameters:
  ///   - keeping: whether it may stay in the cache.
  ///   - partial: what it is the beginning of, if its file may stay when the rest does not come.
  ///   - spooled: what is there of it already.
  func makeSink(
    keeping: Bool, expected: Int64?, of partial: PartialRecord? = nil, continuing spooled: SpooledBody? = nil,
    onRoom: @escaping @Sendable () -> Void
  ) -> BodySink {
    BodySink(
      executor: executor, continuing: spooled,
      makeCacheSpool: keeping ? tier.map { makeSpool(in: $0, expected: expected, of: partial) } : nil,
      makeScratchSpool: makeScratchSpool, onRoom: onRoom)
  }

  private func makeSpool(in tier: DiskTier, expected: Int64?, of partial: PartialRecord? = nil) -> BodySink.MakeSpool {
    { () throws(StoreError) in
      try tier.assumeIsolatedThrowing { tier throws(StoreError) in
        try tier.makeSpool(expected: expected, of: partial)
      }
    }
  }

  private var makeScratchSpool: BodySink.MakeSpool {
    { [scratch] () throws(StoreError) in
      try scratch.assumeIsolatedThrowing { scratch throws(StoreError) in try scratch.makeSpool() }
    }
  }

  /// Drops a body that nobody wants, from any thread.
  func discard(_ body: Download.Body) {
    guard case .spool = body else { return }
    executor.run { self.discardNow(body) }
  }

  /// Drops a body, on the disk's thread.
  func discardNow(_ body: Download.Body) {
    if case .spool(let body) = body { body.spool.drop() }
  }

  /// Removes what a decoder has made, or was to make, from any thread.
  func discard(_ output: DecodeTask.Output) {
    switch output {
    case .check, .placeholder: break
    case .encoded(let path), .preview(let path, _): executor.run { remove(fileAt: path) }
    case .pixels(let path): executor.run { self.pixels.assumeIsolated { $0.drop(path) } }
    }
  }

  /// Leaves a body to a load to come, from any thread. What cannot stay is dropped.
  func leave(_ body: Download.Body) {
    guard case .spool(let spooled) = body else { return }
    executor.run { spooled.spool.unpin() }
  }

  /// What an earlier load has left, on the disk's thread.
  ///
  /// - Parameters:
  ///   - maxBytes: how large the whole may be.
  ///   - acceptsAnything: whether it need not begin like an image.
  func resumePartial(_ identity: PartialRecord.Identity, maxBytes: Int64, acceptsAnything: Bool) -> PartialBody? {
    guard let tier, let (partial, spool) = tier.assumeIsolated({ $0.resumePartial(identity, maxBytes: maxBytes) })
    else { return nil }
    let prefix = (try? spool.bytes(from: 0, count: Recognition.prefixLength)) ?? []
    var format: ImageFormat?
    if case .image(let found) = Recognition(prefix: prefix, isComplete: false) { format = found }
    guard format != nil || acceptsAnything else {
      spool.drop()
      return nil
    }
    return PartialBody(
      response: PartialResponse(partial), body: .spool(SpooledBody(spool: spool, isScratch: false)),
      byteCount: spool.length, format: format, scans: format == .jpeg ? ScanCounter(countingIn: spool) : nil)
  }

  /// Makes a spooled body a scratch file.
  func keepScratch(_ body: SpooledBody, format: String?) throws(StoreError) -> String {
    try scratch.assumeIsolatedThrowing { scratch throws(StoreError) in
      try scratch.store(.spool(body.spool), format: format)
    }
  }
}

extension DiskServices {
  /// Takes in a copy of a file, on the disk's thread. What the cache has no room for is read, if memory has, or goes to
  /// the scratch folder.
  func read(_ path: String, maxBytes: Int64, largestInMemory: Int64) throws(LoadError) -> Download.Body {
    let file: HostFile
    do throws(StoreError) {
      file = try HostFile(path)
    } catch {
      throw LoadError(error)
    }
    WakeupCoalescer.release()
    guard file.byteCount <= maxBytes else { throw LoadError(.tooLarge, "the file is over \(maxBytes) bytes") }
    do throws(StoreError) {
      guard let tier, file.byteCount > Download.spoolThreshold else { return .bytes(try file.readAll()) }
      do throws(StoreError) {
        let spool = try makeSpool(in: tier, expected: file.byteCount)()
        return .spool(SpooledBody(spool: try filled(spool, from: file), isScratch: false))
      } catch {
        if file.byteCount <= largestInMemory { return .bytes(try file.readAll()) }
        // The load does not fail because the cache does.
        let spool = try makeScratchSpool()
        return .spool(SpooledBody(spool: try filled(spool, from: file), isScratch: true))
      }
    } catch {
      throw LoadError(error)
    }
  }

  private func filled(_ spool: BodySpool, from file: HostFile) throws(StoreError) -> BodySpool {
    do throws(StoreError) {
      // Not to its end: it may grow meanwhile.
      while case let left = file.byteCount - spool.length, left > 0,
        case let piece = try file.read(at: spool.length, count: Int(min(left, 1 << 18))), !piece.isEmpty
      { try spool.add(piece) }
    } catch {
      spool.drop()
      throw error
    }
    return spool
  }
}

extension HostFile {
  fileprivate func readAll() throws(StoreError) -> [UInt8] { try read(at: 0, count: Int(byteCount)) }
}
