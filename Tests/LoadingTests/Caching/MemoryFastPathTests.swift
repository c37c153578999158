import Foundation
import HTTPCaching
import HTTPTypes
import Testing
import Threads

@testable import ImageStore
@testable import Loading

/// The memory fast path: requests that memory answers without a load, and those that it leaves to `submit`.
struct MemoryFastPathTests {
  /// A scene whose image is in memory.
  private func warmScene() async throws -> Scene {
    let scene = try await Scene()
    let first = await scene.submit()
    #expect(scene.witness.end(of: first) == "miss")
    return scene
  }

  @Test func `a memory hit does not wait for the disk thread and leaves no load`() async throws {
    let scene = try await warmScene()
    let gate = scene.disk.closeGate()
    let image = try #require(await scene.serveFromMemory())
    #expect(image.cache == .memory)
    #expect(image.content.byteCount == Int64(Scene.image.count))
    #expect(try Data(contentsOf: URL(filePath: #require(image.path))) == Data(Scene.image))
    #expect(await scene.isIdle)
    #expect(await scene.loader.observation.metrics[.memory].count == 1)
    gate.open()
  }

  @Test func `data is served from memory, and so is a request without delivery`() async throws {
    let scene = try await warmScene()
    #expect(await scene.serveFromMemory { $0.delivery = .data }?.data == Scene.image)
    let nothing = try #require(await scene.serveFromMemory { $0.delivery = .none })
    #expect(nothing.path == nil)
    #expect(nothing.data == nil)
  }

  @Test(arguments: [true, false]) func `a request after a host store sees the stored image`(isImage: Bool) async throws
  {
    let scene = try await warmScene()
    let gate = scene.disk.closeGate()
    let (id, report) = await { @LoadingActor in
      let report = Promise<Loader.CacheReport>()
      let content = isImage ? Scene.otherImage : [1, 2, 3]
      scene.loader.put(.bytes(content), as: scene.request { _ in }) { _ in }
      #expect(scene.serveFromMemory { $0.delivery = .data } == nil)
      let id = scene.submit { $0.delivery = .data }
      scene.loader.query(scene.request { _ in }) { report.fulfil($0) }
      return (id, report)
    }()
    gate.open()
    // Content that is not an image has replaced nothing, in memory either.
    #expect(try scene.witness.image(of: id).data == (isImage ? Scene.otherImage : Scene.image))
    #expect(report.value.isInMemory)
    #expect(await scene.serveFromMemory { $0.delivery = .data }?.data == (isImage ? Scene.otherImage : Scene.image))
    #expect(await scene.isIdle)
  }

  @Test func `a response read from disk before a 304 updated it has the updated freshness`() async throws {
    let scene = try await warmScene()
    let id = await { @LoadingActor in
      var response = scene.loader.cache.memory.peek(at: "a")[0].response
      scene.loader.clear(.all, in: .memory) { _ in }
      response.expiresAt = 5
      scene.loader.cache.pending.begin(revalidation: response)
      return scene.submit { $0.delivery = .data }
    }()
    #expect(scene.witness.end(of: id) == "disk")
    #expect(await scene.loader.cache.memory.peek(at: "a").map(\.response.expiresAt) == [5])
  }

  @Test func `the head of the response is included if requested`() async throws {
    let scene = try await warmScene()
    #expect(await scene.serveFromMemory { $0.wantsResponse = true }?.response?.status == 200)
  }

  /// Requests that need more than the memory tier.
  private static let changes: [(String, @Sendable (inout LoadRequest) -> Void)] = [
    ("a key that is not there", { $0.key = "b" }),
    ("no-cache", { $0.cacheMode = .noCache }), ("no-store", { $0.cacheMode = .noStore }),
    ("reload", { $0.cacheMode = .reload }), ("refresh", { $0.cacheMode = .refresh }),
    ("another digest", { $0.digest = [UInt8](repeating: 0, count: 32) }),
    ("a copy", { $0.saveTo = "/dev/null" }),
    ("a range", { $0.fields = LoadHeaders(["range": "bytes=0-1"]) }),
    ("another user", { $0.fields = LoadHeaders(["authorization": "x"]) }),
  ]

  @Test(arguments: changes.indices) func `any other request is left to a load`(number: Int) async throws {
    let scene = try await warmScene()
    let (name, change) = Self.changes[number]
    #expect(await scene.serveFromMemory(change) == nil, "\(name)")
    #expect(await scene.loader.observation.metrics[.memory].count == 0, "\(name)")
  }

  @Test func `a response that a lower max-age made stale is left to a load`() async throws {
    let scene = try await warmScene()
    await { @LoadingActor in
      var settings = LoaderSettings()
      settings.maxAge = 0
      scene.loader.apply(settings)
    }()
    #expect(await scene.serveFromMemory() == nil)
  }

  @Test func `a path is returned only while its file exists`() async throws {
    let scene = try await warmScene()
    let path = try #require(await scene.serveFromMemory()?.path)
    try FileManager.default.removeItem(atPath: path)
    #expect(await scene.serveFromMemory() == nil)
  }

  @Test func `a hit cancels the previous load in its slot`() async throws {
    let scene = try await warmScene()
    let gate = scene.disk.closeGate()
    let other = await scene.submit {
      $0.key = "b"
      $0.slot = "s"
    }
    #expect(await scene.serveFromMemory { $0.slot = "s" } != nil)
    #expect(scene.witness.end(of: other) == "cancelled")
    gate.open()
  }
}

extension Scene {
  @LoadingActor fileprivate func serveFromMemory(_ change: (inout LoadRequest) -> Void = { _ in }) -> LoadedImage? {
    loader.serveFromMemory(request(change))
  }
}
