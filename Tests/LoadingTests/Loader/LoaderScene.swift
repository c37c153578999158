import HTTPCaching
import HTTPTransport
import HTTPTypes
import ImageCodec
import Platform
import Testing
import Threads

@testable import ImageStore
@testable import Loading

/// A loader with a transport and a disk, and a log of the events of its loads.
final class Scene: Sendable {
  let disk: DiskFixture
  let loader: Loader
  let witness: Witness
  let decoder = ScriptedDecoder()

  /// - Parameter disk: the disk of another scene, as for a worker started later.
  init(memory: Int64 = 1 << 20, on disk: DiskFixture? = nil) async throws {
    let disk = try disk ?? DiskFixture()
    self.disk = disk
    (loader, witness) = await { @LoadingActor [decoder] in
      var settings = LoaderSettings()
      settings.memoryLimit = memory
      // Only the test's own calls advance the loader.
      settings.limits.maxLookUps = 0
      let transport = Transport(configuration: TransportConfiguration(userAgent: "test"))
      return (
        Loader(transport: transport, storage: disk.storage, decoder: decoder, settings: settings), Witness()
      )
    }()
  }

  @LoadingActor func submit(_ change: (inout LoadRequest) -> Void = { _ in }) -> LoadID {
    let id = loader.makeID()
    loader.submit(request(change), as: id, for: witness)
    return id
  }

  func request(_ change: (inout LoadRequest) -> Void) -> LoadRequest {
    var request = LoadRequest(
      url: "data:image/gif;base64,", source: .inline(bytes: Scene.image, mediaType: "image/gif"), key: "a")
    change(&request)
    return request
  }

  @LoadingActor var isIdle: Bool {
    loader.registry.isEmpty && loader.jobs.isEmpty && loader.decodes.isEmpty && loader.deliveries.isEmpty
      && loader.cache.pending.isEmpty
  }

  func settle() async throws { try await disk.settle() }

  /// Stores an image for the host under the key `a`.
  func put(_ bytes: [UInt8]) async {
    let stored = Promise<Bool>()
    await { @LoadingActor in
      let request = LoadRequest(url: "", source: .inline(bytes: [], mediaType: ""), key: "a")
      loader.put(.bytes(bytes), as: request) { stored.fulfil((try? $0.get()) != nil) }
    }()
    #expect(stored.value)
  }

  /// The smallest GIF.
  static let image: [UInt8] =
    Array("GIF89a".utf8) + [1, 0, 1, 0, 0, 0, 0, 0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0, 0x3B]

  /// A response with `image`, not stored anywhere.
  static var response: StoredResponse {
    StoredResponse(
      key: "a", url: "", requestTime: 1, responseTime: 1, storedAt: 1, validatedAt: 1, expiresAt: 9,
      content: ImageDescription(
        ImageHeader(.gif, width: 1, height: 1), byteCount: Int64(image.count), digest: SHA256.digest(of: image)))
  }

  /// `response` in the memory tier alone.
  static var candidate: Candidate { Candidate(response: response, bytes: image, location: .memory) }

  /// An image of one pixel with other content.
  static let otherImage: [UInt8] = image.dropLast(2) + [2, 0, 0x3B]
}

extension ActiveLoad {
  /// A load that no loader knows.
  convenience init(
    _ id: LoadID, for observer: any LoadObserver = DiscardingObserver.shared,
    _ change: (inout LoadRequest) -> Void = { _ in }
  ) {
    var request = LoadRequest(url: "", source: .inline(bytes: [], mediaType: ""), key: "a")
    change(&request)
    self.init(
      id: id, request: request, partition: "", acceptedAt: .now, generation: 0, observer: observer, requester: .host)
  }
}

/// Changes to a request that require a decoder.
enum Ask {
  static func small(_ width: Int = 8) -> Transform {
    var transform = Transform()
    transform.width = width
    return transform
  }

  static func `for`(
    _ transform: Transform? = nil, pixels: Bool = false, placeholder: Bool = false, checks: Bool = false,
    facts: FactSet = [], isolation: DecodeTask.Isolation? = nil
  ) -> @Sendable (inout LoadRequest) -> Void {
    { request in
      if pixels { request.delivery = .pixels }
      if checks { request.validation = .decode }
      request.processing = .asked(
        transform: transform, deliversPixels: pixels, wantsPlaceholder: placeholder, checks: checks,
        facts: facts, isolation: isolation)
    }
  }
}

/// An observer that records the events of loads, which can be waited for.
@LoadingActor final class Witness: LoadObserver {
  nonisolated let ends = Locked<[LoadID: [String]]>([:])
  nonisolated init() {}

  nonisolated let results = Locked<[LoadID: Result<LoadedImage, LoadError>]>([:])
  nonisolated let shown = Locked<[LoadID: LoadedImage]>([:])
  /// The scan numbers of the previews, in order.
  nonisolated let scans = Locked<[LoadID: [Int]]>([:])
  /// The loads that ended before something else.
  nonisolated let tardy = Locked<[LoadID]>([])

  func load(_ id: LoadID, did event: LoadEvent) {
    if ends.withLock({ $0[id] != nil }) { tardy.withLock { $0.append(id) } }
    switch event {
    case .cached(let image): shown.withLock { $0[id] = image }
    case .preview(_, _, _, let scan): scans.withLock { $0[id, default: []].append(scan) }
    default: break
    }
  }

  func load(_ id: LoadID, ended result: Result<LoadedImage, LoadError>) {
    let end =
      switch result {
      case .success(let image): image.cache.rawValue
      case .failure(let error): error.kind.rawValue
      }
    results.withLock { $0[id] = result }
    ends.withLock { $0[id, default: []].append(end) }
    ends.notify()
  }

  nonisolated func end(of id: LoadID) -> String { ends.wait { $0[id]?.first }! }

  /// Returns the result of the load, waiting for it.
  nonisolated func image(of id: LoadID) throws -> LoadedImage {
    _ = end(of: id)
    return try results.withLock { $0[id] }!.get()
  }
}
