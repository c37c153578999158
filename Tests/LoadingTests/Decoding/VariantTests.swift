import Foundation
import HTTPCaching
import ImageCodec
import Testing
import Threads

@testable import ImageStore
@testable import Loading

/// Loads that need a decoder. The scripted decoder returns the results that the test specifies.
struct VariantTests {
  // MARK: - Creation and lookup

  @Test func `a variant is made once, and served from memory and from disk`() async throws {
    let scene = try await Scene()
    let first = await scene.submit(Ask.for(Ask.small()))
    scene.decoder.answer()
    let made = try scene.witness.image(of: first)
    #expect(made.cache == .miss)
    #expect(made.source?.byteCount == Int64(Scene.image.count) && made.source?.format == .gif)
    let path = try #require(made.path)
    #expect(try Data(contentsOf: URL(filePath: path)) == Data(Scene.image))
    let again = await scene.submit(Ask.for(Ask.small()))
    #expect(try scene.witness.image(of: again).cache == .memory)
    let later = try await Scene(on: scene.disk)
    let restarted = await later.submit(Ask.for(Ask.small()))
    let found = try later.witness.image(of: restarted)
    #expect(found.cache == .disk && found.path == made.path && found.source?.format == .gif)
    #expect(scene.decoder.orderCount == 1 && later.decoder.orderCount == 0)
    #expect(await scene.isIdle)
  }

  @Test(arguments: [true, false])
  func `damage of the original is reported with its variant or pixels, and in every later answer`(isVariant: Bool)
    async throws
  {
    let scene = try await Scene()
    let ask = Ask.for(isVariant ? Ask.small() : nil, checks: !isVariant)
    let first = await scene.submit(ask)
    scene.decoder.answer { task in
      ScriptedDecoder.succeed(task).map { decoded in
        var damaged = decoded
        damaged.notes = .damaged
        return damaged
      }
    }
    #expect(try scene.witness.image(of: first).notes == .damaged)
    #expect(try scene.witness.image(of: await scene.submit(ask)).notes == .damaged)
    let later = try await Scene(on: scene.disk)
    #expect(try later.witness.image(of: await later.submit(ask)).notes == .damaged)
    #expect(try later.witness.image(of: await later.submit()).notes == .damaged)
    #expect(scene.decoder.orderCount == 1 && later.decoder.orderCount == 0)
  }

  @Test func `loads of one isolation share a decode, and the decoder is told`() async throws {
    let scene = try await Scene()
    _ = scene.witness.end(of: await scene.submit())
    let isolations: [DecodeTask.Isolation?] = [
      nil, .image, .tenant("a"), .tenant("b"), DecodeTask.Isolation.none, .image,
    ]
    var loads: [LoadID] = []
    for isolation in isolations { loads.append(await scene.submit(Ask.for(Ask.small(), isolation: isolation))) }
    let orders = isolations.dropLast().map { _ in scene.decoder.next() }
    #expect(orders.map(\.task.isolation) == isolations.dropLast())
    for order in orders { order.then(ScriptedDecoder.succeed(order.task)) }
    for load in loads { #expect(scene.witness.end(of: load) == "memory") }
    #expect(scene.decoder.orderCount == orders.count)
    #expect(await scene.isIdle)
  }

  @Test func `a new variant of a cached original reports the tier of the original`() async throws {
    let scene = try await Scene()
    _ = scene.witness.end(of: await scene.submit())
    let id = await scene.submit(Ask.for(Ask.small()))
    scene.decoder.answer()
    #expect(scene.witness.end(of: id) == "memory")
  }

  @Test func `equal requests share one decode, different ones have their own`() async throws {
    let scene = try await Scene()
    let ids = await { @LoadingActor in [8, 8, 9, 8].map { scene.submit(Ask.for(Ask.small($0))) } }()
    scene.decoder.answer()
    scene.decoder.answer()
    for id in ids { #expect(scene.witness.end(of: id) == "miss") }
    #expect(scene.decoder.orderCount == 2)
    #expect(await scene.isIdle)
  }

  @Test func `a load of the original does not wait for decodes of variants`() async throws {
    let scene = try await Scene()
    let variant = await scene.submit(Ask.for(Ask.small()))
    let order = scene.decoder.next()
    let original = await scene.submit()
    #expect(try scene.witness.image(of: original).source == nil)
    order.then(ScriptedDecoder.succeed(order.task))
    #expect(scene.witness.end(of: variant) == "miss")
  }

  @Test func `a variant that must not be stored is delivered`() async throws {
    let scene = try await Scene()
    let id = await scene.submit {
      Ask.for(Ask.small())(&$0)
      $0.cacheMode = .noStore
    }
    scene.decoder.answer()
    let path = try #require(try scene.witness.image(of: id).path)
    #expect(try Data(contentsOf: URL(filePath: path)) == Data(Scene.image))
    let entries = try scene.disk.onDisk { [tier = scene.disk.tier] in tier.assumeIsolated { $0.counts.entries } }
    #expect(entries == 0)
    let next = await scene.submit(Ask.for(Ask.small()))
    scene.decoder.answer()
    #expect(scene.witness.end(of: next) == "miss")
  }

  @Test func `a variant outlives its original`() async throws {
    let scene = try await Scene()
    _ = await scene.submit(Ask.for(Ask.small()))
    scene.decoder.answer()
    let tier = scene.disk.tier
    let original = try scene.disk.onDisk { tier.assumeIsolated { $0.look(up: "a") } }
    var newer = original[0]
    newer.id = 0
    try scene.disk.onDisk { [newer] in tier.assumeIsolated { $0.remove(replacedBy: newer) } }
    let later = try await Scene(on: scene.disk)
    #expect(later.witness.end(of: await later.submit(Ask.for(Ask.small()))) == "disk")
  }

  @Test func `a variant that is only in memory is found`() async throws {
    let scene = try await Scene()
    for expected in ["miss", "memory"] {
      let id = await scene.submit {
        Ask.for(Ask.small())(&$0)
        $0.store = .memory
      }
      if expected == "miss" { scene.decoder.answer() }
      #expect(scene.witness.end(of: id) == expected)
    }
    let again = await scene.submit {
      Ask.for(Ask.small())(&$0)
      $0.store = .memory
      $0.cacheMode = .noCache
    }
    #expect(scene.witness.end(of: again) == "miss")
    #expect(scene.decoder.orderCount == 1)
  }

  // MARK: - Replaced originals

  @Test func `a variant is removed with its original`() async throws {
    let scene = try await Scene()
    _ = scene.witness.end(of: await scene.submit(Ask.for(Ask.small()), answeredBy: scene.decoder))
    await scene.put(Scene.otherImage)
    let id = await scene.submit(Ask.for(Ask.small()))
    let order = scene.decoder.next()
    order.then(ScriptedDecoder.succeed(order.task))
    #expect(try scene.witness.image(of: id).source?.byteCount == Int64(Scene.otherImage.count))
    let variants = try scene.disk.onDisk { [tier = scene.disk.tier] in tier.assumeIsolated { $0.variants(of: "a") } }
    #expect(variants == ["v3,w=8"])
  }

  @Test func `a variant whose original is replaced during the decode is delivered, but not stored`() async throws {
    let scene = try await Scene()
    let id = await scene.submit(Ask.for(Ask.small()))
    let order = scene.decoder.next()
    await scene.put(Scene.otherImage)
    order.then(ScriptedDecoder.succeed(order.task))
    #expect(scene.witness.end(of: id) == "miss")
    _ = await scene.submit(Ask.for(Ask.small()))
    let second = scene.decoder.next()
    #expect(second.ticket != order.ticket)
    second.then(ScriptedDecoder.succeed(second.task))
  }

  @Test func `the same content stored again keeps its variants`() async throws {
    let scene = try await Scene()
    _ = scene.witness.end(of: await scene.submit(Ask.for(Ask.small()), answeredBy: scene.decoder))
    await scene.put(Scene.image)
    #expect(scene.witness.end(of: await scene.submit(Ask.for(Ask.small()))) == "memory")
  }

  @Test func `clear removes variants, and a variant being decoded is not stored`() async throws {
    let scene = try await Scene()
    let id = await scene.submit(Ask.for(Ask.small()))
    let order = scene.decoder.next()
    let cleared = Promise<Int>()
    let next = await { @LoadingActor in
      scene.loader.clear(.key("a"), in: .all) { cleared.fulfil((try? $0.get().removed) ?? -1) }
      return scene.submit(Ask.for(Ask.small()))
    }()
    order.then(ScriptedDecoder.succeed(order.task))
    #expect(scene.witness.end(of: id) == "miss")
    scene.decoder.answer()
    #expect(scene.witness.end(of: next) == "miss")
    #expect(cleared.value == 1)
    let all = Promise<Int>()
    await { @LoadingActor in scene.loader.clear(.key("a"), in: .all) { all.fulfil((try? $0.get().removed) ?? -1) } }()
    #expect(all.value == 2)
  }

  @Test func `a variant is not stored if its original was cleared during the lookup`() async throws {
    let scene = try await Scene(memory: 0)
    _ = scene.witness.end(of: await scene.submit())
    let gate = scene.disk.closeGate()
    let id = await scene.submit(Ask.for(Ask.small()))
    await { @LoadingActor in scene.loader.clear(.key("a"), in: .all) { _ in } }()
    gate.open()
    scene.decoder.answer()
    _ = scene.witness.end(of: id)
    let next = await scene.submit(Ask.for(Ask.small()))
    scene.decoder.answer()
    #expect(scene.witness.end(of: next) == "miss")
  }

  @Test func `a variant is not stored if its original was cleared during the check`() async throws {
    let scene = try await Scene()
    let id = await scene.submit(Ask.for(Ask.small(), checks: true))
    let check = scene.decoder.next()
    await { @LoadingActor in scene.loader.clear(.key("a"), in: .all) { _ in } }()
    check.then(ScriptedDecoder.succeed(check.task))
    scene.decoder.answer()
    #expect(scene.witness.end(of: id) == "miss")
    let next = await scene.submit(Ask.for(Ask.small()))
    scene.decoder.answer()
    #expect(scene.witness.end(of: next) == "miss")
  }

  // MARK: - Waiting

  @Test func `the decode is cancelled when its last load is cancelled`() async throws {
    let scene = try await Scene()
    let ids = await (scene.submit(Ask.for(Ask.small())), scene.submit(Ask.for(Ask.small())))
    let order = scene.decoder.next()
    #expect(await scene.loader.cancel(ids.0))
    #expect(await scene.loader.cancel(ids.1))
    scene.decoder.waitForCancel(of: order)
    order.then(ScriptedDecoder.succeed(order.task))
    #expect(scene.witness.end(of: ids.1) == "cancelled")
    #expect(await scene.isIdle)
  }

  @Test func `a decode has the highest priority of its loads`() async throws {
    let scene = try await Scene()
    let first = await scene.submit {
      Ask.for(Ask.small())(&$0)
      $0.priority = .low
    }
    let order = scene.decoder.next()
    #expect(order.priority == Priority.low.rawValue)
    #expect(await scene.loader.prioritize(.one(first), .high) == 1)
    scene.decoder.waitForPriority(Priority.high.rawValue, of: order)
    #expect(await scene.loader.prioritize(.one(first), .high) == 0)
    order.then(ScriptedDecoder.succeed(order.task))
    #expect(scene.witness.end(of: first) == "miss")
  }

  @Test func `a deadline reaches a load that waits for a decoder`() async throws {
    let scene = try await Scene()
    let id = await scene.submit {
      Ask.for(Ask.small())(&$0)
      $0.deadline = .nanoseconds(1)
    }
    let order = scene.decoder.next()
    _ = await scene.loader.advance()
    #expect(scene.witness.end(of: id) == "timeout")
    scene.decoder.waitForCancel(of: order)
    #expect(await scene.isIdle)
  }

  @Test(arguments: [
    (DecodeError.corrupt("x"), "corrupt"), (.unsupportedFormat("x"), "unsupportedFormat"),
    (.tooManyPixels("x"), "tooManyPixels"), (.cropOutside("x"), "invalidParams"), (.crashed, "decoderCrashed"),
    (.killed, "decoderCrashed"),
    (.timedOut(DecodeTimeout(.processorTime, processorTime: .seconds(10), elapsedTime: .seconds(12))), "decodeTimeout"),
    (.unavailable("x"), "internal"),
  ])
  func `a decoder error ends all loads that wait for the decode`(error: DecodeError, kind: String) async throws {
    let scene = try await Scene()
    let ids = await { @LoadingActor in (scene.submit(Ask.for(Ask.small())), scene.submit(Ask.for(Ask.small()))) }()
    scene.decoder.answer { _ in .failure(error) }
    #expect(scene.witness.end(of: ids.0) == kind && scene.witness.end(of: ids.1) == kind)
    #expect(scene.witness.end(of: await scene.submit()) == "disk")
    #expect(await scene.isIdle)
  }

  @Test(arguments: [(DecodeTimeout.Limit.processorTime, false), (.elapsedTime, true)])
  func `only a decode that waited for the processor is retryable`(limit: DecodeTimeout.Limit, isRetryable: Bool) {
    let timeout = DecodeTimeout(limit, processorTime: .seconds(2), elapsedTime: .seconds(60))
    let error = LoadError(.timedOut(timeout))
    #expect((error.kind, error.isRetryable) == (.decodeTimeout, isRetryable))
    #expect(error.decodeTimeout == timeout)
  }

  @Test func `cancelling one of two loads that wait for a variant leaves the other`() async throws {
    let scene = try await Scene()
    let ids = await { @LoadingActor in (scene.submit(Ask.for(Ask.small())), scene.submit(Ask.for(Ask.small()))) }()
    let order = scene.decoder.next()
    #expect(await scene.loader.cancel(ids.0))
    order.then(ScriptedDecoder.succeed(order.task))
    #expect(scene.witness.end(of: ids.0) == "cancelled" && scene.witness.end(of: ids.1) == "miss")
    #expect(await scene.isIdle)
  }

  @Test func `a load whose original was lost is decoded next`() async throws {
    let scene = try await Scene(memory: 0)
    let id = await scene.submit(Ask.for(Ask.small()))
    scene.decoder.answer { _ in .failure(.io("no such file")) }
    let order = scene.decoder.next()
    #expect(order.priority == Priority.highest.rawValue)
    order.then(ScriptedDecoder.succeed(order.task))
    #expect(scene.witness.end(of: id) == "disk")
  }

  @Test(arguments: [Priority.normal, .low, .high, .highest])
  func `a load that is decoded next stays so after a change of its priority`(priority: Priority) async throws {
    let scene = try await Scene(memory: 0)
    let id = await scene.submit(Ask.for(Ask.small()))
    scene.decoder.answer { _ in .failure(.io("no such file")) }
    let order = scene.decoder.next()
    #expect(await scene.loader.prioritize(.one(id), priority) == (priority == .normal ? 0 : 1))
    #expect(await scene.loader.prioritize(.one(id), priority) == 0)
    #expect(scene.decoder.priority(of: order) == Priority.highest.rawValue)
    order.then(ScriptedDecoder.succeed(order.task))
    #expect(scene.witness.end(of: id) == "disk")
  }

  @Test func `an original that is lost before its decode is looked up once more`() async throws {
    let scene = try await Scene(memory: 0)
    let id = await scene.submit(Ask.for(Ask.small()))
    scene.decoder.answer { _ in .failure(.io("no such file")) }
    scene.decoder.answer()
    #expect(scene.witness.end(of: id) == "disk")
    #expect(await scene.isIdle)
    let unlucky = await scene.submit(Ask.for(Ask.small(9)))
    scene.decoder.answer { _ in .failure(.io("no such file")) }
    scene.decoder.answer { _ in .failure(.io("no such file")) }
    #expect(scene.witness.end(of: unlucky) == "io")
  }

  // MARK: - Placeholders, checks, pixels

  @Test func `a placeholder is made once`() async throws {
    let scene = try await Scene()
    let id = await scene.submit(Ask.for(placeholder: true))
    scene.decoder.answer()
    let expected = Placeholder(thumbHash: [1, 2, 3], color: 0x0A0B0C)
    #expect(try scene.witness.image(of: id).placeholder == expected)
    #expect(try scene.witness.image(of: await scene.submit(Ask.for(placeholder: true))).placeholder == expected)
    #expect(try scene.witness.image(of: await scene.submit()).placeholder == nil)
    let later = try await Scene(on: scene.disk)
    #expect(try later.witness.image(of: await later.submit(Ask.for(placeholder: true))).placeholder == expected)
    #expect(scene.decoder.orderCount == 1 && later.decoder.orderCount == 0)
  }

  @Test func `an image in memory is delivered as data after its placeholder has been made`() async throws {
    let scene = try await Scene()
    _ = scene.witness.end(of: await scene.submit())
    let id = await scene.submit {
      Ask.for(placeholder: true)(&$0)
      $0.delivery = .data
    }
    scene.decoder.answer()
    #expect(try scene.witness.image(of: id).data == Scene.image)
  }

  @Test func `a variant has its own placeholder, made along with it`() async throws {
    let scene = try await Scene()
    let id = await scene.submit(Ask.for(Ask.small(), placeholder: true))
    scene.decoder.answer()
    #expect(try scene.witness.image(of: id).placeholder != nil)
    _ = scene.witness.end(of: await scene.submit(Ask.for(placeholder: true), answeredBy: scene.decoder))
    #expect(scene.decoder.orderCount == 2)
  }

  @Test func `an image is checked once`() async throws {
    let scene = try await Scene()
    let id = await scene.submit(Ask.for(checks: true))
    scene.decoder.answer()
    #expect(scene.witness.end(of: id) == "miss")
    let later = try await Scene(on: scene.disk)
    #expect(later.witness.end(of: await later.submit(Ask.for(checks: true))) == "disk")
    let variant = await scene.submit(Ask.for(Ask.small(), checks: true))
    let order = scene.decoder.next()
    guard case .encoded = order.task.output else {
      Issue.record("the original was checked again")
      return
    }
    order.then(ScriptedDecoder.succeed(order.task))
    _ = scene.witness.end(of: variant)
  }

  @Test func `a transform with a check checks the original first`() async throws {
    let scene = try await Scene()
    let id = await scene.submit(Ask.for(Ask.small(), checks: true))
    scene.decoder.answer { $0.output == .check ? .failure(.corrupt("cut")) : .failure(.crashed) }
    #expect(scene.witness.end(of: id) == "corrupt")
  }

  @Test func `pixels are the host's until it releases them`() async throws {
    let scene = try await Scene()
    let ids = await (scene.submit(Ask.for(pixels: true)), scene.submit(Ask.for(pixels: true)))
    scene.decoder.answer()
    scene.decoder.answer()
    let (one, two) = try (scene.witness.image(of: ids.0), scene.witness.image(of: ids.1))
    let path = try #require(one.pixels?.path)
    #expect(path != two.pixels?.path && one.pixels?.stride == 3 && one.path == nil && one.source == nil)
    #expect(try Data(contentsOf: URL(filePath: path)) == Data([255, 0, 0]))
    let released = Promise<Int>()
    await { @LoadingActor in
      for path in [path, path, nil] { scene.loader.release(path, areUnused: false) { released.fulfil($0) } }
    }()
    let counts = try scene.disk.onDisk { [pixels = scene.disk.pixels] in pixels.assumeIsolated { $0.counts } }
    #expect(counts == PixelFolder.Counts())
    // The loading thread answers after the disk.
    await { @LoadingActor in }()
    #expect(released.all == [1, 0, 1])
    #expect(!FileManager.default.fileExists(atPath: path))
    #expect(await scene.isIdle)
  }

  @Test func `pixels without a waiting load are removed`() async throws {
    let scene = try await Scene()
    let id = await scene.submit(Ask.for(pixels: true))
    let order = scene.decoder.next()
    _ = await scene.loader.cancel(id)
    let result = ScriptedDecoder.succeed(order.task)
    order.then(result)
    // Passes through the loading thread and the disk thread.
    let isDone = Promise<Bool>()
    LoadingActor.run { scene.disk.executor.run { isDone.fulfil(true) } }
    _ = isDone.value
    guard case .pixels(let path) = order.task.output else { return }
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test func `a crop outside the image fails before pixels are requested from a decoder`() async throws {
    let scene = try await Scene()
    var transform = Transform()
    transform.crop = .init(x: 5, y: 5, width: 1, height: 1)
    #expect(scene.witness.end(of: await scene.submit(Ask.for(transform, pixels: true))) == "invalidParams")
    #expect(scene.decoder.orderCount == 0)
  }

  @Test func `the cached event contains a variant if the request asks for one`() async throws {
    let scene = try await Scene()
    _ = scene.witness.end(of: await scene.submit(Ask.for(Ask.small()), answeredBy: scene.decoder))
    let id = await scene.submit {
      Ask.for(Ask.small())(&$0)
      $0.cacheMode = .refresh
    }
    _ = scene.witness.end(of: id)
    #expect(scene.witness.shown.withLock { $0[id] }?.source?.format == .gif)
  }
}

extension Scene {
  /// Submits a load whose single decode succeeds.
  fileprivate func submit(
    _ change: @Sendable (inout LoadRequest) -> Void, answeredBy decoder: ScriptedDecoder
  ) async -> LoadID {
    let id = await submit(change)
    decoder.answer()
    return id
  }
}
