internal import ImageCodec
internal import ImageStore
internal import Threads

/// The input of one decode, and its preparation on the disk thread.
struct DecodePreparation: Sendable {
  var candidate: Candidate
  var step: DecodePlan.Step
  var transform: Transform?
  var wantsPlaceholder: Bool
  var maxPixels: Int
  var isolation: DecodeTask.Isolation?
  /// Whether the candidate's bytes, if any, may wait in memory.
  var mayHoldBytes = true

  /// A source file that is kept until the decode ends.
  enum HeldFile: Sendable {
    /// - Parameter isOwn: whether it was written for this decode alone.
    case scratch(String, isOwn: Bool)
    /// A file of a tier, by the id of its response.
    case stored(Int64, in: DiskTier)
  }

  enum PreparedDecode: Sendable {
    /// `removeReader` must be called with the file after the decode.
    case ready(DecodeTask, HeldFile?)
    /// The variant already exists.
    case found(Candidate)
    /// The source is gone.
    case lost
    case failed(LoadError)
  }

  /// The preparation of a step that a load with this plan needs.
  init(_ candidate: Candidate, _ step: DecodePlan.Step, _ plan: DecodePlan?, maxPixels: Int) {
    (self.candidate, self.step, self.maxPixels) = (candidate, step, maxPixels)
    transform = step == .encode || step == .pixels ? plan?.transform : nil
    wantsPlaceholder = plan?.wantsPlaceholder == true && step != .check
    isolation = plan?.isolation
  }

  func prepare(in storage: DiskServices) -> PreparedDecode {
    if let variant = storedVariant(in: storage) { return .found(variant) }
    do {
      guard let header = candidate.response.content.header else { throw LoadError.notAnImage([]) }
      let output = try output(header, storage)
      guard let (source, file) = source(in: storage) else {
        storage.discard(output)
        return .lost
      }
      return .ready(
        DecodeTask(
          source: source, header: header, transform: transform ?? Transform(), output: output,
          wantsPlaceholder: wantsPlaceholder, maxPixels: maxPixels, isolation: isolation), file)
    } catch {
      return .failed(LoadError(ofDiskWork: error))
    }
  }

  /// The stored variant, if it was made from this original. Another load may have made it while the original was being
  /// transferred.
  private func storedVariant(in storage: DiskServices) -> Candidate? {
    guard step == .encode, let name = transform?.canonical, !candidate.isTransient else { return nil }
    let original = candidate.response
    return storage.candidates(for: original.key, original.partition, variant: name).first {
      $0.response.sharesOriginal(with: original)
    }
  }

  private func source(in storage: DiskServices) -> (DecodeTask.Source, HeldFile?)? {
    if case .scratch(let path) = candidate.location {
      return (.file(path), storage.addReader(ofScratch: path, isOwn: false))
    }
    if let tier = storage.tier(of: candidate) {
      let response = candidate.response
      if tier.assumeIsolated({ $0.addReader(of: response) }) {
        return (.file(tier.absolutePath(of: response)), .stored(response.id, in: tier))
      }
    }
    guard let bytes = candidate.bytes else { return nil }
    if mayHoldBytes { return (.bytes(bytes), nil) }
    let path = storage.scratch.assumeIsolated { scratch in
      try? scratch.store(.bytes(bytes), format: candidate.response.content.format, isSource: true)
    }
    // On a full disk, exceeding the memory budget is better than failing the load.
    guard let path else { return (.bytes(bytes), nil) }
    return (.file(path), storage.addReader(ofScratch: path, isOwn: true))
  }

  private func output(_ header: ImageHeader, _ storage: DiskServices) throws -> DecodeTask.Output {
    switch step {
    case .check: return .check
    case .placeholder: return .placeholder
    case .facts(let facts): return .facts(facts)
    case .encode: return .encoded(try storage.scratch.assumeIsolated { try $0.newPath() })
    case .renditions(let set):
      if set.renditions.isEmpty { return .renditions(set, "") }
      return .renditions(set, try storage.scratch.assumeIsolated { try $0.newPath() })
    case .pixels:
      let byteCount = Int64(min(try pixelCount(header), .max / 4) * 4)
      do {
        return .pixels(try storage.pixels.assumeIsolated { try $0.reserve(byteCount: byteCount) })
      } catch let error as StoreError where error.kind == .overLimit {
        throw LoadError(.overloaded, error.message)
      }
    }
  }

  /// The number of pixels of the result; 0 if the header does not tell, in which case the decoder enforces the limit.
  private func pixelCount(_ header: ImageHeader) throws -> Int {
    let geometry: Geometry?
    do throws(GeometryError) {
      geometry = try (transform ?? Transform()).geometry(of: header)
    } catch {
      throw LoadError(.cropOutside(error.description))
    }
    guard let geometry else { return 0 }
    guard geometry.height <= maxPixels / geometry.width else {
      throw LoadError(.overLimit(maxPixels, width: geometry.width, height: geometry.height))
    }
    return geometry.width * geometry.height
  }
}

/// The decodes of an image that were prepared while it was stored, until the loads that need them are served: the disk
/// thread need not be entered once more.
struct PreparedDecodes: Sendable {
  /// The properties in which two orders agree if one decode serves either.
  private struct Key: Hashable {
    let image: Int64
    let step: DecodePlan.Step
    let transform: String?
    let wantsPlaceholder: Bool
    let maxPixels: Int

    init(_ order: DecodePreparation) {
      (image, step, transform) = (order.candidate.response.id, order.step, order.transform?.canonical)
      (wantsPlaceholder, maxPixels) = (order.wantsPlaceholder, order.maxPixels)
    }
  }

  private var decodes: [Key: [(task: DecodeTask, file: DecodePreparation.HeldFile?)]] = [:]

  /// Prepares a decode of a stored image. Pixels are prepared once for each load, since they are never shared. Must run
  /// on the disk thread.
  mutating func prepare(_ order: DecodePreparation, in storage: DiskServices) {
    let key = Key(order)
    guard order.step == .pixels || decodes[key, default: []].isEmpty,
      case .ready(let task, let file) = order.prepare(in: storage)
    else { return }
    decodes[key, default: []].append((task, file))
  }

  /// Takes the decode that was prepared for the order, if there is one.
  mutating func take(_ order: DecodePreparation) -> DecodePreparation.PreparedDecode? {
    guard let decode = decodes[Key(order)]?.popLast() else { return nil }
    return .ready(decode.task, decode.file)
  }

  /// Releases the decodes that nobody took.
  mutating func discard(in storage: DiskServices) {
    for decode in decodes.values.joined() {
      storage.discard(decode.task.output)
      if let file = decode.file { storage.removeReader(of: file) }
    }
    decodes = [:]
  }
}

extension DiskServices {
  /// Keeps a scratch file. Must run on the disk thread.
  fileprivate func addReader(ofScratch path: String, isOwn: Bool) -> DecodePreparation.HeldFile {
    scratch.assumeIsolated { $0.addReader(of: path) }
    return .scratch(path, isOwn: isOwn)
  }

  /// Releases the source file of a decode. May be called from any thread.
  func removeReader(of file: DecodePreparation.HeldFile) {
    executor.run {
      switch file {
      case .scratch(let path, let isOwn): self.scratch.assumeIsolated { $0.removeReader(of: path, removing: isOwn) }
      case .stored(let id, let tier): tier.assumeIsolated { $0.removeReader(of: id) }
      }
    }
  }
}
