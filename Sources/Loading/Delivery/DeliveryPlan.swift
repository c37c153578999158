internal import ImageStore

/// The content that one load wants, and its production on the disk thread.
struct DeliveryPlan: Sendable {
  var wantsPath: Bool
  var wantsData: Bool
  var saveTo: String?
  /// Whether to return the bytes for the memory tier, if the stored file is still valid.
  var wantsBytes = false
  /// Whether the content is for a decoder, which needs a file unless the bytes are in memory.
  var isForDecoder = false

  init(_ request: borrowing LoadRequest) {
    (wantsPath, wantsData) = (request.delivery == .path, request.delivery == .data)
    saveTo = request.saveTo
  }

  /// - Parameter stage: a `cached` event does not write `saveTo`.
  init(_ request: borrowing LoadRequest, at stage: DeliveryStage) {
    self.init(request)
    if stage == .cachedEvent { saveTo = nil }
  }

  private init() { (wantsPath, wantsData, isForDecoder) = (false, false, true) }

  static let forDecoder = DeliveryPlan()

  /// The source of a delivery.
  enum Source: Sendable {
    case stored(StoredResponse, in: DiskTier)
    case bytes([UInt8], format: ImageFormat?)
    /// A scratch file, and its bytes if a load wants them.
    case scratch(path: String, bytes: [UInt8]?)
  }

  struct DeliveredContent: Sendable {
    var path: String?
    var bytes: [UInt8]?
    /// Whether the bytes are also for the memory tier.
    var isForMemory = false
  }

  enum Failure: Error {
    /// The file is missing or damaged; the store has removed its entry.
    case damaged
    case failed(LoadError)
  }

  /// Whether nothing has to be read or written.
  var isNothing: Bool { !wantsPath && !wantsData && saveTo == nil && !wantsBytes && !isForDecoder }

  /// Whether the delivery needs a file.
  var wantsFile: Bool { wantsPath || saveTo != nil || isForDecoder }

  func perform(on source: Source, scratch: ScratchFolder, now: Int) -> Result<DeliveredContent, Failure> {
    do {
      var delivered = DeliveredContent()
      switch source {
      case .stored(let response, let tier): try deliver(response, in: tier, scratch, now: now, to: &delivered)
      case .bytes(let bytes, let format):
        delivered.bytes = bytes
        if let saveTo { try ImageStore.save(copyOf: .bytes(bytes), to: saveTo) }
        if wantsPath {
          delivered.path = try scratch.assumeIsolated { try $0.store(.bytes(bytes), format: format) }
        }
      case .scratch(let path, let bytes):
        delivered = DeliveredContent(path: path, bytes: bytes)
        if wantsPath { scratch.assumeIsolated { $0.markDelivered(path, at: now) } }
        if wantsData, bytes == nil {
          let file = try HostFile(path)
          delivered.bytes = try file.read(at: 0, count: Int(file.byteCount))
        }
        if let saveTo { try ImageStore.save(copyOf: .file(path), to: saveTo) }
      }
      return .success(delivered)
    } catch let error as StoreError {
      return .failure(error.kind == .damaged ? .damaged : .failed(LoadError(error)))
    } catch {
      return .failure(.failed(LoadError(.io, "\(error)")))
    }
  }

  private func deliver(
    _ response: StoredResponse, in tier: DiskTier, _ scratch: ScratchFolder, now: Int,
    to delivered: inout DeliveredContent
  ) throws {
    let path = tier.absolutePath(of: response)
    // Mark first: a file marked as delivered is not evicted.
    tier.assumeIsolated { $0.markDelivered(response.id, at: now, byPath: wantsPath) }
    if wantsData || wantsBytes {
      do {
        delivered.bytes = try tier.assumeIsolated { try $0.read(response) }
      } catch let error as StoreError {
        // Treat any read error as damage, so that the load continues without the file.
        throw StoreError(.damaged, error.message)
      }
      delivered.isForMemory = wantsBytes
    } else if !tier.assumeIsolated({ $0.check(response) }) {
      throw StoreError(.damaged, "the file was removed")
    }
    if let saveTo {
      do {
        try ImageStore.save(copyOf: delivered.bytes.map { .bytes($0) } ?? .file(path), to: saveTo)
      } catch {
        // A peer may have removed the file in the meantime.
        if tier.assumeIsolated({ $0.check(response) }) { throw error }
        throw StoreError(.damaged, "the file was removed")
      }
    }
    if wantsPath {
      // A read-only directory belongs to other workers, which do not know that a host has the path: deliver a copy.
      delivered.path =
        tier.mode == .readWrite ? path : try scratch.assumeIsolated { try $0.store(copyOf: response, in: tier) }
    }
  }
}

extension LoadError {
  init(_ error: StoreError) {
    let kind: Kind =
      switch error.kind {
      case .diskFull, .overLimit: .diskFull
      // As for a socket without a descriptor: a retry may succeed.
      case .noDescriptor: .network
      case .outside: .invalidParams
      default: .io
      }
    self.init(kind, error.message)
    if error.kind == .outside { member = "file" }
    isTransient = error.kind == .changed
  }

  /// The error that a load gets for any error on the disk thread.
  init(ofDiskWork error: any Error) {
    switch error {
    case let error as LoadError: self = error
    case let error as StoreError: self.init(error)
    default: self.init(.internal, "\(error)")
    }
  }
}

/// The results that a load delivers, in their order.
enum DeliveryStage: Comparable, CaseIterable {
  /// The cached image that a load with `refresh` shows before its answer.
  case cachedEvent
  /// The result that ends the load.
  case answer
}
