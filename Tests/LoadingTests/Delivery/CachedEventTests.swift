import HTTPCaching
import ImageCodec
import Platform
import Testing
import Threads

@testable import ImageStore
@testable import Loading

/// The `cached` event of `refresh`, and the answer after it.
struct CachedEventTests {
  private static func refresh(_ transform: Transform? = nil) -> @Sendable (inout LoadRequest) -> Void {
    { request in
      if let transform { Ask.for(transform)(&request) }
      request.cacheMode = .refresh
    }
  }

  /// A scene with an image on disk, and in memory if `memory` is not 0. If `failing`, a remembered failure ends loads
  /// that need a transfer.
  private func scene(memory: Int64 = 0, failing: Bool = false) async throws -> Scene {
    let scene = try await Scene(memory: memory)
    _ = scene.witness.end(of: await scene.submit())
    guard failing else { return scene }
    await { @LoadingActor in
      scene.loader.cache.failures.remember(
        LoadError(.http, "404"), of: scene.request { _ in }.identity(in: ""), maxBytes: 0, now: .now)
    }()
    return scene
  }

  private func isShown(_ id: LoadID, in scene: Scene) -> Bool {
    scene.witness.shown.withLock { $0[id] != nil } && scene.witness.tardy.withLock { $0.isEmpty }
  }

  @Test(arguments: [0, 1 << 20])
  func `the event precedes an answer from the same decode`(memory: Int64) async throws {
    let scene = try await scene(memory: memory)
    let id = await scene.submit(Self.refresh(Ask.small()))
    let order = scene.decoder.next()
    try await scene.settle()
    order.then(ScriptedDecoder.succeed(order.task))
    #expect(scene.witness.end(of: id) == "miss")
    #expect(isShown(id, in: scene))
    #expect(scene.decoder.orderCount == 1)
    #expect(await scene.isIdle)
  }

  @Test func `the event precedes an answer that is not stored`() async throws {
    let scene = try await scene()
    let id = await scene.submit {
      Self.refresh(Ask.small())(&$0)
      $0.store = []
    }
    scene.decoder.answer()
    scene.decoder.answer()
    #expect(scene.witness.end(of: id) == "miss")
    #expect(isShown(id, in: scene))
  }

  @Test(arguments: [0, 1 << 20])
  func `an error waits until the cached image is read`(memory: Int64) async throws {
    let scene = try await scene(memory: memory, failing: true)
    let id = await scene.submit(Self.refresh())
    #expect(scene.witness.end(of: id) == "recentlyFailed")
    #expect(isShown(id, in: scene))
    #expect(await scene.isIdle)
  }

  @Test func `an error waits until the cached image is decoded`() async throws {
    let scene = try await scene(failing: true)
    let id = await scene.submit(Self.refresh(Ask.small()))
    let order = scene.decoder.next()
    try await scene.settle()
    #expect(scene.witness.ends.withLock { $0[id] == nil })
    order.then(ScriptedDecoder.succeed(order.task))
    #expect(scene.witness.end(of: id) == "recentlyFailed")
    #expect(isShown(id, in: scene))
    #expect(await scene.isIdle)
  }

  @Test func `an error stops waiting if the cached image cannot be decoded`() async throws {
    let scene = try await scene(failing: true)
    let id = await scene.submit(Self.refresh(Ask.small()))
    scene.decoder.answer { _ in .failure(.crashed) }
    #expect(scene.witness.end(of: id) == "recentlyFailed")
    #expect(!isShown(id, in: scene))
    #expect(await scene.isIdle)
  }

  @Test func `a new image waits for the event, whose decode becomes urgent`() async throws {
    let scene = try await scene()
    await scene.put(Scene.otherImage)
    let id = await scene.submit(Self.refresh(Ask.small()))
    let (old, new) = (scene.decoder.next(), scene.decoder.next())
    #expect(scene.decoder.priority(of: old) == Priority.normal.rawValue)
    new.then(ScriptedDecoder.succeed(new.task))
    scene.decoder.waitForPriority(Priority.highest.rawValue, of: old)
    #expect(await scene.loader.prioritize(.one(id), .normal) == 0)
    #expect(scene.decoder.priority(of: old) == Priority.highest.rawValue)
    #expect(scene.witness.ends.withLock { $0[id] == nil })
    old.then(ScriptedDecoder.succeed(old.task))
    #expect(scene.witness.end(of: id) == "miss")
    #expect(isShown(id, in: scene))
    #expect(scene.witness.shown.withLock { $0[id] }?.source?.byteCount == Int64(Scene.otherImage.count))
    #expect(try scene.witness.image(of: id).source?.byteCount == Int64(Scene.image.count))
    #expect(scene.decoder.orderCount == 2)
    #expect(await scene.isIdle)
  }

  /// The answer to a `refresh`: a new image that waits for the decode of the old one.
  private func waiting(
    in scene: Scene, _ change: @Sendable (inout LoadRequest) -> Void = { _ in }
  ) async throws -> (LoadID, ScriptedDecoder.Order) {
    await scene.put(Scene.otherImage)
    let id = await scene.submit {
      Self.refresh(Ask.small())(&$0)
      change(&$0)
    }
    let (old, new) = (scene.decoder.next(), scene.decoder.next())
    new.then(ScriptedDecoder.succeed(new.task))
    scene.decoder.waitForPriority(Priority.highest.rawValue, of: old)
    return (id, old)
  }

  @Test func `a new image stops waiting if the cached image cannot be decoded`() async throws {
    let scene = try await scene()
    let (id, old) = try await waiting(in: scene)
    old.then(.failure(.corrupt("cut")))
    #expect(scene.witness.end(of: id) == "miss")
    #expect(!isShown(id, in: scene))
    #expect(await scene.isIdle)
  }

  @Test func `a load ends with the waiting image at its deadline`() async throws {
    let scene = try await scene()
    let (id, old) = try await waiting(in: scene) { $0.deadline = .nanoseconds(1) }
    _ = await scene.loader.advance()
    #expect(scene.witness.end(of: id) == "miss")
    scene.decoder.waitForCancel(of: old)
    #expect(!isShown(id, in: scene))
    #expect(await scene.isIdle)
  }

  @Test func `the path of a waiting image is valid for 60 seconds from its delivery`() async throws {
    let scene = try await scene()
    let (id, old) = try await waiting(in: scene)
    let usage = { [tier = scene.disk.tier] in
      try scene.disk.onDisk {
        tier.assumeIsolated { $0.look(up: "a", variant: Ask.small().canonical).first.flatMap($0.usage) }
      }
    }
    let before = try #require(try usage())
    scene.disk.time.withLock { $0 += 20 }
    old.then(ScriptedDecoder.succeed(old.task))
    #expect(scene.witness.end(of: id) == "miss")
    let after = try #require(try usage())
    #expect(after.lastUse == scene.disk.time.withLock { $0 } && after.lastUse != before.lastUse)
    #expect(after.count == before.count, "that it waited is no use")
  }

  @Test func `an image waits no longer than its file is guaranteed to exist`() async throws {
    let scene = try await scene()
    let (id, old) = try await waiting(in: scene)
    _ = await scene.loader.decodes.endOverdue(at: .now + .seconds(31))
    #expect(scene.witness.end(of: id) == "miss")
    scene.decoder.waitForCancel(of: old)
    #expect(!isShown(id, in: scene))
    #expect(await scene.isIdle)
  }

  @Test func `a load can be cancelled while an error waits`() async throws {
    let scene = try await scene(failing: true)
    let id = await scene.submit(Self.refresh(Ask.small()))
    let order = scene.decoder.next()
    try await scene.settle()
    #expect(await scene.loader.cancel(id))
    #expect(scene.witness.end(of: id) == "cancelled")
    scene.decoder.waitForCancel(of: order)
    #expect(await scene.isIdle)
  }

  @Test func `a load ends with the waiting error at its deadline`() async throws {
    let scene = try await scene(failing: true)
    let id = await scene.submit {
      Self.refresh(Ask.small())(&$0)
      $0.deadline = .nanoseconds(1)
    }
    _ = scene.decoder.next()
    try await scene.settle()
    _ = await scene.loader.advance()
    #expect(scene.witness.end(of: id) == "recentlyFailed")
    #expect(await scene.isIdle)
  }

  @Test func `there is no cached event with pixels, and no answer waits for one`() async throws {
    let scene = try await scene(failing: true)
    let id = await scene.submit {
      Ask.for(pixels: true)(&$0)
      $0.cacheMode = .refresh
    }
    #expect(scene.witness.end(of: id) == "recentlyFailed")
    #expect(scene.decoder.orderCount == 0 && !isShown(id, in: scene))
    #expect(await scene.isIdle)
  }
}
