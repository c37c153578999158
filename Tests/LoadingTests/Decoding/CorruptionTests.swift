import HTTPCaching
import ImageCodec
import Testing
import Threads

@testable import ImageStore
@testable import Loading

/// Metadata and failures that decoding finds and later loads use.
struct CorruptionTests {
  private static let corrupt: @Sendable (DecodeTask) -> Result<Decoded, DecodeError> = { _ in
    .failure(.corrupt("cut"))
  }

  /// Submits loads that need a decoder until one fails because the image is corrupt.
  private func scene(_ change: @escaping @Sendable (inout LoadRequest) -> Void) async throws -> Scene {
    let scene = try await Scene()
    let id = await scene.submit(change)
    scene.decoder.answer(Self.corrupt)
    #expect(scene.witness.end(of: id) == "corrupt")
    return scene
  }

  @Test(arguments: [Ask.for(Ask.small()), Ask.for(checks: true), Ask.for(placeholder: true), Ask.for(pixels: true)])
  func `an image that does not decode is not decoded again`(change: @escaping @Sendable (inout LoadRequest) -> Void)
    async throws
  {
    let scene = try await scene(change)
    #expect(scene.witness.end(of: await scene.submit(change)) == "corrupt")
    #expect(try scene.witness.image(of: await scene.submit()).content.byteCount == Int64(Scene.image.count))
    #expect(scene.decoder.orderCount == 1)
    #expect(await scene.isIdle)
  }

  @Test func `an image that fails one operation may pass another`() async throws {
    let scene = try await scene(Ask.for(checks: true))
    let id = await scene.submit(Ask.for(Ask.small()))
    scene.decoder.answer()
    #expect(scene.witness.end(of: id) == "memory")
    let other = await scene.submit(Ask.for(Ask.small(9)))
    scene.decoder.answer()
    #expect(scene.witness.end(of: other) == "memory")
  }

  @Test func `a load with retryFailed decodes the image again`() async throws {
    let scene = try await scene(Ask.for(Ask.small()))
    let retried = await scene.submit {
      Ask.for(Ask.small())(&$0)
      $0.retriesFailed = true
    }
    scene.decoder.answer()
    #expect(scene.witness.end(of: retried) == "disk")
    #expect(scene.witness.end(of: await scene.submit(Ask.for(Ask.small()))) == "memory")
  }

  @Test func `clearing failures includes corrupt images`() async throws {
    let scene = try await scene(Ask.for(Ask.small()))
    #expect(await scene.loader.clearFailures() == 1)
    let id = await scene.submit(Ask.for(Ask.small()))
    scene.decoder.answer()
    #expect(scene.witness.end(of: id) == "disk")
  }

  @Test func `corrupt images are not remembered if failures are not`() async throws {
    let scene = try await Scene()
    await { @LoadingActor in
      var settings = LoaderSettings()
      settings.failedTimeToLive = .zero
      scene.loader.apply(settings)
    }()
    for _ in 0..<2 {
      let id = await scene.submit(Ask.for(Ask.small()))
      scene.decoder.answer(Self.corrupt)
      #expect(scene.witness.end(of: id) == "corrupt")
    }
  }

  @Test func `another image under the same key is decoded`() async throws {
    let scene = try await scene(Ask.for(Ask.small()))
    for image in [Scene.otherImage, Scene.image] {
      await scene.put(image)
      let id = await scene.submit(Ask.for(Ask.small()))
      scene.decoder.answer()
      #expect(scene.witness.end(of: id) == "memory")
    }
  }

  @Test(arguments: [
    DecodeError.crashed, .timedOut(DecodeTimeout(.elapsedTime, processorTime: nil, elapsedTime: .seconds(60))),
    .tooManyPixels("x"), .unsupportedFormat("x"), .io("x"),
  ])
  func `an error that the image did not cause is retried`(error: DecodeError) async throws {
    let scene = try await Scene()
    let id = await scene.submit(Ask.for(Ask.small()))
    scene.decoder.answer { _ in .failure(error) }
    if case .io = error { scene.decoder.answer { _ in .failure(error) } }
    _ = scene.witness.end(of: id)
    let next = await scene.submit(Ask.for(Ask.small()))
    scene.decoder.answer()
    #expect(scene.witness.end(of: next) == "disk")
  }

  @Test func `the metadata of two concurrent decodes is merged`() async throws {
    let scene = try await Scene()
    let ids = await (scene.submit(Ask.for(placeholder: true)), scene.submit(Ask.for(checks: true)))
    let orders = (scene.decoder.next(), scene.decoder.next())
    orders.0.then(ScriptedDecoder.succeed(orders.0.task))
    _ = scene.witness.end(of: ids.0)
    orders.1.then(ScriptedDecoder.succeed(orders.1.task))
    _ = scene.witness.end(of: ids.1)
    for scene in [scene, try await Scene(on: scene.disk)] {
      let id = await scene.submit(Ask.for(placeholder: true, checks: true))
      try await scene.settle()
      #expect(scene.witness.results.withLock { try? $0[id]?.get().placeholder } != nil)
    }
  }

  @Test func `metadata of an image that is stored again during the decode is recorded for the new entry`() async throws
  {
    let scene = try await Scene()
    let first = await scene.submit(Ask.for(checks: true))
    let order = scene.decoder.next()
    await scene.put(Scene.image)
    let second = await scene.submit(Ask.for(checks: true))
    try await scene.settle()
    order.then(ScriptedDecoder.succeed(order.task))
    _ = (scene.witness.end(of: first), scene.witness.end(of: second))
    let third = await scene.submit(Ask.for(checks: true))
    try await scene.settle()
    #expect(scene.witness.ends.withLock { $0[third] } == ["memory"])
    #expect(scene.decoder.orderCount == 1)
  }

  @Test func `deadlines of ended loads are removed`() async throws {
    let scene = try await Scene()
    for width in 1...200 {
      let id = await scene.submit {
        Ask.for(Ask.small(width))(&$0)
        $0.deadline = .seconds(3600)
      }
      scene.decoder.answer()
      _ = scene.witness.end(of: id)
    }
    let count = await { @LoadingActor in scene.loader.decodes.deadlineCount }()
    #expect(count < 100)
  }
}
