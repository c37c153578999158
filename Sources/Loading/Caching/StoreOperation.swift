public import ImageCodec
public import ImageStore

/// The processing of a complete body on the disk thread: parse the image header, store the body in the tiers that may
/// have it, serve all loads that wait.
struct StoreOperation: Sendable {
  var body: Download.Body
  var format: ImageFormat?
  /// The response to store, without the properties that the body determines.
  var draft: StoredResponse
  var tiers: LoadRequest.Tiers
  /// Whether the response already stored under the key is out of date, even if this one is not stored.
  var invalidatesStored = false
  /// The identity of the partial bodies that become useless once this is stored.
  var partials: PartialRecord.Identity?
  /// The largest body that the memory tier takes, in bytes.
  var largestInMemory: Int64
  /// Whether an image header without a size is an error.
  var needsSize: Bool
  /// The lease that keeps peers from transferring the same image until it is in the index.
  var lease: Lease?
  /// `PeerTable.clearCount` at the start of the transfer: the clears so far by all workers of the directory.
  var clearCount: UInt64?
  var deliveries: [(id: LoadID, digest: [UInt8]?, delivery: DeliveryPlan)]
  /// The plans of the loads that need a decode of the image, and the number of pixels that a decode may have.
  var decodes: (plans: [DecodePlan], maxPixels: Int) = ([], 0)

  typealias Outcome = Result<Stored, LoadError>

  struct Stored: Sendable {
    var response: StoredResponse
    /// The body, if it is in memory anyway or stored nowhere else.
    var bytes: [UInt8]?
    /// False if every load asked for another digest. The body was not stored then.
    var isIntact = true
    /// False if the disk tier was to store the body and did not.
    var isKept = true
    /// Whether it is a variant of an original that has been replaced in the meantime. It was not stored then.
    var isOutdated = false
    var delivered: [LoadID: Result<DeliveryPlan.DeliveredContent, LoadError>] = [:]
    /// The first decodes of the image, if it is on disk.
    var decodes = PreparedDecodes()
  }

  func store(in storage: DiskServices) -> Outcome {
    var draft = draft
    do {
      try describe(&draft)
      return .success(try storeBody(as: draft, in: storage))
    } catch {
      storage.discardNow(body)
      return .failure(LoadError(ofDiskWork: error))
    }
  }

  /// Sets the properties that the content determines.
  private func describe(_ draft: inout StoredResponse) throws {
    switch body {
    case .bytes(let bytes): draft.content.byteCount = Int64(bytes.count)
    case .spool(let body): draft.content.byteCount = body.spool.length
    case .failed(let error): throw LoadError(error)
    }
    guard let format else { return }
    do {
      switch body {
      case .bytes(let bytes): try draft.describe(bytes, format: format)
      case .spool(let body): try draft.describe(SpoolSource(spool: body.spool), format: format)
      case .failed(let error): throw LoadError(error)
      }
    } catch let error as ImageHeaderError {
      if needsSize { throw LoadError(.corrupt, "the \(format.rawValue) header is invalid: \(error)") }
    }
  }

  private func storeBody(as draft: StoredResponse, in storage: DiskServices) throws -> Stored {
    var draft = draft
    let bytes: [UInt8]?
    switch body {
    case .bytes(let all): (bytes, draft.content.digest) = (all, SHA256.digest(of: all))
    case .spool(let body): (bytes, draft.content.digest) = (nil, try body.spool.digest())
    case .failed(let error): throw LoadError(error)
    }
    // A body that no waiting load accepts is not stored.
    guard deliveries.isEmpty || deliveries.contains(where: { $0.digest == nil || $0.digest == draft.content.digest })
    else {
      storage.discardNow(body)
      return serve(Stored(response: draft, isIntact: false), from: .bytes([], format: nil), storage)
    }
    var stored = Stored(response: draft, bytes: bytes)
    if tiers.contains(.disk), let tier = storage.tier {
      switch keep(draft, in: tier) {
      case .success(let kept):
        stored.response = kept
        for plan in decodes.plans {
          guard let step = plan.step(for: kept) else { continue }
          let source = Candidate(response: kept, bytes: nil, location: .disk)
          stored.decodes.prepare(
            DecodePreparation(source, step, plan, maxPixels: decodes.maxPixels), in: storage)
        }
        return serve(stored, from: .stored(kept, in: tier), storage)
      case .failure(let error):
        // The disk tier cannot store the body: deliver it anyway.
        stored.isKept = false
        stored.isOutdated = error.kind == .outdated
      }
    }
    if !tiers.isEmpty || invalidatesStored, !stored.isOutdated {
      // The stored response is older than this one, and must not be served after it.
      storage.tier?.assumeIsolated { $0.remove(replacedBy: draft) }
    }
    guard case .spool(let body) = body else {
      return serve(stored, from: .bytes(bytes ?? [], format: draft.content.format), storage)
    }
    let wanted =
      deliveries.contains { $0.delivery.wantsData }
      || tiers.contains(.memory) && draft.content.byteCount <= largestInMemory
    stored.bytes = wanted ? try body.spool.bytes(from: 0, count: Int(draft.content.byteCount)) : nil
    guard deliveries.contains(where: { $0.delivery.wantsFile }) else {
      body.spool.drop()
      return serve(stored, from: .bytes(stored.bytes ?? [], format: draft.content.format), storage)
    }
    let path = try storage.keepScratch(body, format: draft.content.format)
    return serve(stored, from: .scratch(path: path, bytes: stored.bytes), storage)
  }

  private func keep(_ draft: StoredResponse, in tier: DiskTier) -> Result<StoredResponse, StoreError> {
    let isDelivered = deliveries.contains { $0.delivery.wantsPath }
    let content: DiskTier.Body
    switch body {
    case .bytes(let bytes): content = .bytes(bytes)
    case .spool(let body) where !body.isScratch: content = .spool(body.spool)
    default: return .failure(StoreError(.overLimit, "the body is in a scratch file"))
    }
    return tier.assumeIsolated { [partials, lease, clearCount] tier in
      Result { () throws(StoreError) in
        let stored = try tier.store(content, as: draft, delivered: isDelivered, clearCount: clearCount)
        if let lease { tier.retainUntilCommit(lease) }
        if let partials { tier.removePartials(of: partials) }
        return stored
      }
    }
  }

  private func serve(_ stored: Stored, from source: DeliveryPlan.Source, _ storage: DiskServices) -> Stored {
    var stored = stored
    // Read once for all deliveries.
    var bytes = stored.bytes
    for (id, digest, delivery) in deliveries {
      if let digest, digest != stored.response.content.digest {
        let error = LoadError(
          .digestMismatch, "the content's digest is sha256-\(stored.response.content.digest.hexadecimal)")
        stored.delivered[id] = .failure(error)
        continue
      }
      if delivery.isNothing {
        stored.delivered[id] = .success(DeliveryPlan.DeliveredContent())
        continue
      }
      if case .stored(let response, let tier) = source, delivery.saveTo == nil,
        bytes != nil || !delivery.wantsData
      {
        // The file has just been written, and its row says that it is delivered.
        let path = delivery.wantsPath ? tier.absolutePath(of: response) : nil
        stored.delivered[id] = .success(DeliveryPlan.DeliveredContent(path: path, bytes: bytes))
        continue
      }
      let outcome = delivery.perform(on: source, scratch: storage.scratch, now: storage.now())
      if delivery.wantsData, case .success(let delivered) = outcome { bytes = delivered.bytes }
      stored.delivered[id] = outcome.mapError { failure in
        switch failure {
        case .damaged: LoadError(.io, "the file was removed right after it was written")
        case .failed(let error): error
        }
      }
    }
    return stored
  }
}

extension StoreOperation {
  /// As `store`, with the body from a file of the worker, which is removed.
  func storing(fileAt path: String, in storage: DiskServices) -> Outcome {
    defer { remove(fileAt: path) }
    do throws(LoadError) {
      var own = self
      own.body = try storage.read(HostPlace(.path(path)), maxBytes: .max, largestInMemory: largestInMemory)
      return own.store(in: storage)
    } catch {
      return .failure(error)
    }
  }

  /// As `store`, with the body and the format from content of the host.
  func storing(_ content: Loader.Content, maxBytes: Int64, in storage: DiskServices) -> Outcome {
    do throws(LoadError) {
      let body: Download.Body =
        switch content {
        case .bytes(let bytes): .bytes(bytes)
        case .file(let place): try storage.read(place, maxBytes: maxBytes, largestInMemory: largestInMemory)
        }
      return storing(body: body, maxBytes: maxBytes, in: storage)
    } catch {
      return .failure(error)
    }
  }

  /// As `store`, with a body of the host, whose format it has.
  func storing(body: Download.Body, maxBytes: Int64, in storage: DiskServices) -> Outcome {
    do throws(LoadError) {
      var own = self
      own.body = body
      let prefix: [UInt8]
      switch own.body {
      case .bytes(let bytes) where bytes.count > maxBytes:
        throw LoadError.tooLarge("content", bytes: Int64(bytes.count), maxBytes: maxBytes)
      case .bytes(let bytes): prefix = Array(bytes.prefix(Recognition.prefixLength))
      case .spool(let body): prefix = (try? body.spool.bytes(from: 0, count: Recognition.prefixLength)) ?? []
      case .failed(let error): throw LoadError(error)
      }
      if case .image(let found) = Recognition(prefix: prefix, isComplete: prefix.count < Recognition.prefixLength) {
        own.format = found
      } else if needsSize {
        storage.discardNow(own.body)
        throw LoadError.notAnImage(prefix)
      }
      return own.store(in: storage)
    } catch {
      return .failure(error)
    }
  }
}

extension StoredResponse {
  /// Sets the properties that the content of an image determines. If its header cannot be read, only the format and the
  /// media type.
  public mutating func describe(
    _ content: any ByteSource, format: ImageFormat
  ) throws(ImageHeaderError) {
    (self.content.header, self.content.mediaType) = (ImageHeader(format), format.mediaType)
    self.content.header = try ImageHeader.read(content, format: format)
  }
}

/// A spooled body as a source for the image codec. Must be used on the disk thread.
public struct SpoolSource: ByteSource {
  let spool: BodySpool

  public init(spool: BodySpool) { self.spool = spool }

  public var count: Int { Int(spool.length) }

  public func bytes(at offset: Int, count: Int) -> ArraySlice<UInt8> {
    guard offset >= 0, count > 0 else { return [] }
    return ((try? spool.bytes(from: Int64(offset), count: count)) ?? [])[...]
  }
}
