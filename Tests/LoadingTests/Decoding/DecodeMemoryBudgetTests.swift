import Foundation
import HTTPCaching
import ImageCodec
import Testing
import Threads

@testable import ImageStore
@testable import Loading

/// Images without a file that wait for a decoder.
struct DecodeMemoryBudgetTests {
  /// The memory budget admits one image.
  private func scene() async throws -> Scene {
    let scene = try await Scene()
    await { @LoadingActor in scene.loader.decodes.memory.limit = Scene.image.count }()
    return scene
  }

  private static func ask(
    _ change: @escaping @Sendable (inout LoadRequest) -> Void
  ) -> @Sendable (inout LoadRequest) -> Void {
    { request in
      change(&request)
      request.cacheMode = .noStore
    }
  }

  private func waiting(in scene: Scene) async -> Int { await scene.loader.decodes.memory.count }

  private func file(of order: ScriptedDecoder.Order) -> String? {
    if case .file(let path) = order.task.source { path } else { nil }
  }

  @Test(arguments: [LoadRequest.Tiers.memory, []])
  func `an image beyond the memory budget waits in a file`(store: LoadRequest.Tiers) async throws {
    let scene = try await scene()
    let ids = await { @LoadingActor in
      (8...10).map { width in
        scene.submit {
          Ask.for(Ask.small(width))(&$0)
          $0.key = "\(width)"
          $0.store = store
        }
      }
    }()
    let orders = ids.map { _ in scene.decoder.next() }
    #expect(await waiting(in: scene) == Scene.image.count)
    #expect(file(of: orders[0]) == nil)
    for order in orders.dropFirst() {
      let path = try #require(file(of: order))
      #expect(try Data(contentsOf: URL(filePath: path)) == Data(Scene.image))
    }
    for (id, order) in zip(ids, orders) {
      order.then(ScriptedDecoder.succeed(order.task))
      #expect(scene.witness.end(of: id) == "miss")
    }
    try scene.disk.onDisk {}
    for order in orders { #expect(file(of: order).map { FileManager.default.fileExists(atPath: $0) } != true) }
    #expect(await waiting(in: scene) == 0)
    #expect(await scene.isIdle)
  }

  @Test(arguments: [LoadRequest.Delivery.path, .data])
  func `an image that waited in a file is delivered from that file`(delivery: LoadRequest.Delivery) async throws {
    let scene = try await scene()
    await { @LoadingActor in scene.loader.decodes.memory.limit = 0 }()
    let id = await scene.submit {
      Self.ask(Ask.for(placeholder: true, checks: true))(&$0)
      $0.delivery = delivery
    }
    scene.decoder.answer()
    scene.decoder.answer()
    let image = try scene.witness.image(of: id)
    #expect(image.placeholder != nil)
    if delivery == .data {
      #expect(image.data == Scene.image)
    } else {
      let path = try #require(image.path)
      #expect(path.hasSuffix(".gif"))
      #expect(try Data(contentsOf: URL(filePath: path)) == Data(Scene.image))
    }
    #expect(await scene.isIdle)
  }

  @Test(arguments: [false, true])
  func `an image without a waiting load releases its memory and file`(early: Bool) async throws {
    let scene = try await scene()
    let first = await scene.submit(Self.ask(Ask.for(Ask.small())))
    _ = scene.decoder.next()
    let gate: Gate? = early ? scene.disk.closeGate() : nil
    let second = await scene.submit {
      Self.ask(Ask.for(pixels: true))(&$0)
      $0.key = "b"
    }
    let order = early ? nil : scene.decoder.next()
    for id in [first, second] { #expect(await scene.loader.cancel(id)) }
    gate?.open()
    try await scene.settle()
    try await scene.settle()
    #expect(await waiting(in: scene) == 0)
    if let order { #expect(!FileManager.default.fileExists(atPath: try #require(file(of: order)))) }
    #expect(scene.disk.files(under: "scratch").isEmpty)
    #expect(await scene.isIdle)
  }

  @Test func `a load fails if neither memory nor disk has space`() async throws {
    let scene = try await scene()
    let first = await scene.submit(Self.ask(Ask.for(Ask.small())))
    let order = scene.decoder.next()
    scene.disk.scratchFault.withLock { $0 = { $0 == .create ? ENOSPC : nil } }
    let id = await scene.submit {
      Self.ask(Ask.for(pixels: true))(&$0)
      $0.key = "b"
    }
    #expect(scene.witness.end(of: id) == "diskFull")
    scene.disk.scratchFault.withLock { $0 = nil }
    order.then(ScriptedDecoder.succeed(order.task))
    #expect(scene.witness.end(of: first) == "miss")
    #expect(await waiting(in: scene) == 0)
    #expect(await scene.isIdle)
  }
}
