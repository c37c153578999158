internal import ImageStore

/// What one load wants to have of an image, and how it gets it. Carried out on the disk's thread.
struct DeliveryPlan: Sendable {
  var wantsPath: Bool
  var wantsData: Bool
  var saveTo: String?
  /// Whether the bytes are to come back for the memory tier, if a look-up still finds what they are of.
  var wantsBytes = false
  /// Whether a decoder needs it: as a file, unless its bytes are there.
  var isForDecoder = false

  init(_ request: LoadRequest) {
    wantsPath = request.delivery == .path
    wantsData = request.delivery == .data
    saveTo = request.saveTo
  }

  /// - Parameter isFinal: false for the `cached` event of `refresh`, which saves nothing.
  init(_ request: LoadRequest, isFinal: Bool) {
    self.init(request)
    if !isFinal { saveTo = nil }
  }

  private init() {
    wantsPath = false
    wantsData = false
    isForDecoder = true
  }

  static let forDecoder = DeliveryPlan()

  /// Where an image is.
  enum Source: Sendable {
    case stored(StoredResponse, in: DiskTier)
    case bytes([UInt8], format: String?)
    /// A file that is not kept, and its bytes if somebody wants them.
    case scratch(path: String, bytes: [UInt8]?)
  }

  struct DeliveredContent: Sendable {
    var path: String?
    var bytes: [UInt8]?
    /// Whether the bytes are for the memory tier as well.
    var isForMemory = false
  }

  enum Failure: Error {
    /// The file is gone or is not what was stored; the store has dropped it.
    case damaged
    case failed(LoadError)
  }

  /// Whether nothing has to be written or read.
  var isNothing: Bool { !wantsPath && !wantsData && saveTo == nil && !wantsBytes && !isForDecoder }

  /// Whether there has to be a file for it.
  var wantsFile: Bool { wantsPath || saveTo != nil || isForDecoder }

  func perform(on source: Source, scratch: ScratchFolder, now: Int) -> Result<DeliveredContent, Failure> {
    do {
      var delivered = DeliveredContent()
      switch source {
      case .stored(let response, let tier):
        try deliver(response, in: tier, scratch, now: now, to: &delivered)
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
    _ response: StoredResponse, in tier: DiskTier, _ scratch: ScratchFolder, now: Int, to delivered: inout DeliveredContent
  ) throws {
    let path = tier.absolutePath(of: response)
    // The mark comes first: from here on nobody evicts the file.
    tier.assumeIsolated { $0.markDelivered(response.id, at: now, byPath: wantsPath) }
    if wantsData || wantsBytes {
      do {
        delivered.bytes = try tier.assumeIsolated { try $0.read(response) }
      } catch let error as StoreError {
        // Whatever keeps it from being read, the load goes on without it.
        throw StoreError(.damaged, error.message)
      }
      delivered.isForMemory = wantsBytes
    } else if !tier.assumeIsolated({ $0.check(response) }) {
      throw StoreError(.damaged, "the file is gone")
    }
    if let saveTo {
      do {
        try ImageStore.save(copyOf: delivered.bytes.map { .bytes($0) } ?? .file(path), to: saveTo)
      } catch {
        // Another worker may have removed the file since.
        if tier.assumeIsolated({ $0.check(response) }) { throw error }
        throw StoreError(.damaged, "the file is gone")
      }
    }
    if wantsPath {
      // What is only read belongs to others, who know nothing of hosts that have its path.
      delivered.path =
        tier.mode == .readWrite ? path : try scratch.assumeIsolated { try $0.store(copyOf: response, in: tier) }
    }
  }
}

extension LoadError {
  init(_ error: StoreError) {
    let kind: Kind =
      switch error.kind {
      case .diskFull, .noRoom: .diskFull
      // As where a socket gets no descriptor: the load may well succeed a little later.
      case .noDescriptor: .network
      default: .io
      }
    self.init(kind, error.message)
  }
}
