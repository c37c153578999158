import HTTPCaching
import HTTPTypes
import ImageCodec
import Testing
import Threads

@testable import ImageStore
@testable import Loading

/// The effect of a clear on loads under way.
struct PendingInvalidationTests {
  /// Filters that do not match a load with the key `a`.
  static let others: [ClearFilter] = [
    .url("https://other.test/b", key: "b"), .key("b"), .prefix("b"), .host("other.test", port: nil),
    .olderThan(seconds: 1), .expired,
  ]
  /// Filters that match the response stored under the key `a`.
  static let own: [ClearFilter] = [
    .url("https://own.test/a", key: "c"), .key("a"), .prefix("a"), .host("own.test", port: 443),
    .olderThan(seconds: -1), .all,
  ]

  private func load(of url: String = "https://own.test/a") -> @Sendable (inout LoadRequest) -> Void {
    { request in
      Ask.for(Ask.small())(&request)
      request.url = url
    }
  }

  /// A scene with an image on disk.
  private func scene(memory: Int64 = 1 << 20) async throws -> Scene {
    let first = try await Scene(memory: 0)
    _ = first.witness.end(of: await first.submit { $0.url = "https://own.test/a" })
    return try await Scene(memory: memory, on: first.disk)
  }

  @LoadingActor private func clear(_ filter: ClearFilter, in scene: Scene, _ tiers: Loader.Tiers = .all) {
    scene.loader.clear(filter, in: tiers) { _ in }
  }

  /// Whether memory has an original or a variant.
  @LoadingActor private func isInMemory(_ variant: String, _ scene: Scene) -> Bool {
    !scene.loader.cache.memory.peek(at: "a", variant: variant).isEmpty
  }

  private static let variant = Ask.small().canonical

  // MARK: - A clear that does not match the image

  @Test(arguments: others)
  func `an image being looked up during another clear is decoded once and stored`(filter: ClearFilter)
    async throws
  {
    let scene = try await scene()
    let gate = scene.disk.closeGate()
    let ids = await { @LoadingActor in
      let before = [scene.submit(load()), scene.submit(load())]
      clear(filter, in: scene)
      return before + [scene.submit(load())]
    }()
    gate.open()
    scene.decoder.answer()
    for id in ids { #expect(scene.witness.end(of: id) == "disk") }
    #expect(scene.decoder.orderCount == 1)
    #expect(await isInMemory(Self.variant, scene))
    #expect(scene.witness.end(of: await scene.submit(load())) == "memory")
    #expect(await scene.isIdle)
  }

  @Test(arguments: others) func `a decode under way during another clear is shared with later loads and stored`(
    filter: ClearFilter
  ) async throws {
    let scene = try await scene()
    let before = await scene.submit(load())
    let order = scene.decoder.next()
    await clear(filter, in: scene)
    let after = await scene.submit(load())
    try await scene.settle()
    order.then(ScriptedDecoder.succeed(order.task))
    #expect(scene.witness.end(of: before) == "disk" && scene.witness.end(of: after) == "disk")
    #expect(scene.decoder.orderCount == 1)
    #expect(await isInMemory(Self.variant, scene))
    #expect(await scene.isIdle)
  }

  @Test(arguments: others) func `an image being read during another clear enters memory`(filter: ClearFilter)
    async throws
  {
    let scene = try await scene()
    let id = await reading(in: scene) { clear(filter, in: scene) }
    #expect(scene.witness.end(of: id) == "disk")
    #expect(await isInMemory("", scene))
  }

  @Test(arguments: others) func `an image that the host stores during another clear enters memory`(filter: ClearFilter)
    async throws
  {
    let scene = try await Scene()
    await put(in: scene) { clear(filter, in: scene) }
    #expect(await isInMemory("", scene))
  }

  // MARK: - A clear that matches the image

  @Test(arguments: own)
  func `an image being looked up during its clear is decoded once for earlier loads and not stored`(filter: ClearFilter)
    async throws
  {
    let scene = try await scene()
    let gate = scene.disk.closeGate()
    let (before, after) = await { @LoadingActor in
      let before = [scene.submit(load()), scene.submit(load())]
      clear(filter, in: scene)
      return (before, scene.submit(load()))
    }()
    gate.open()
    let orders = [scene.decoder.next(), scene.decoder.next()]
    try await scene.settle()
    for order in orders { order.then(ScriptedDecoder.succeed(order.task)) }
    for id in before { #expect(scene.witness.end(of: id) == "disk") }
    #expect(scene.witness.end(of: after) == "miss")
    #expect(scene.decoder.orderCount == 2)
    #expect(await scene.isIdle)
  }

  @Test(arguments: own) func `a variant decoded during the clear is in no tier afterwards`(filter: ClearFilter)
    async throws
  {
    let scene = try await scene()
    let gate = scene.disk.closeGate()
    let id = await { @LoadingActor in
      defer { clear(filter, in: scene) }
      return scene.submit(load())
    }()
    gate.open()
    scene.decoder.answer()
    #expect(scene.witness.end(of: id) == "disk")
    #expect(await !isInMemory(Self.variant, scene))
    #expect(await !isInMemory("", scene))
    let tier = scene.disk.tier
    #expect(try scene.disk.onDisk { tier.assumeIsolated { $0.counts.entries } } == 0)
    #expect(await scene.isIdle)
  }

  @Test(arguments: own) func `later loads do not join its decode, which is not stored`(filter: ClearFilter) async throws
  {
    let scene = try await scene()
    let before = await scene.submit(load())
    let old = scene.decoder.next()
    await clear(filter, in: scene)
    let after = await scene.submit(load())
    let new = scene.decoder.next()
    old.then(ScriptedDecoder.succeed(old.task))
    #expect(scene.witness.end(of: before) == "disk")
    #expect(await !isInMemory(Self.variant, scene))
    new.then(ScriptedDecoder.succeed(new.task))
    #expect(scene.witness.end(of: after) == "miss")
    #expect(await isInMemory(Self.variant, scene))
    #expect(await scene.isIdle)
  }

  @Test func `a load that stores nothing shares no decode with loads of a cleared image`() async throws {
    let scene = try await scene()
    let gate = scene.disk.closeGate()
    let ids = await { @LoadingActor in
      let before = scene.submit(load())
      clear(.key("a"), in: scene)
      let after = scene.submit {
        load()(&$0)
        $0.cacheMode = .noStore
      }
      return [before, after]
    }()
    gate.open()
    scene.decoder.answer()
    scene.decoder.answer()
    #expect(ids.map { scene.witness.end(of: $0) } == ["disk", "miss"])
    #expect(await scene.isIdle)
  }

  @Test(arguments: own) func `an image being read during its clear does not enter memory`(filter: ClearFilter)
    async throws
  {
    let scene = try await scene()
    let id = await reading(in: scene) { clear(filter, in: scene) }
    #expect(scene.witness.end(of: id) == "disk")
    #expect(await !isInMemory("", scene))
  }

  @Test(arguments: own) func `an image that waits for the output does not enter memory after its clear`(
    filter: ClearFilter
  )
    async throws
  {
    let scene = try await scene()
    let id = try await waitingToBeRead(in: scene)
    await clear(filter, in: scene)
    await readOutput(in: scene)
    #expect(scene.witness.end(of: id) == "disk")
    #expect(await !isInMemory("", scene))
    #expect(scene.witness.end(of: await scene.submit { $0.cacheMode = .onlyIfCached }) == "notCached")
  }

  @Test func `an image that was replaced while it waited for the output does not enter memory`() async throws {
    let scene = try await scene()
    let old = try await waitingToBeRead(in: scene)
    let new = await scene.submit {
      $0.source = .inline(bytes: Scene.otherImage, mediaType: "image/gif")
      $0.cacheMode = .reload
      $0.store = .disk
    }
    #expect(scene.witness.end(of: new) == "miss")
    await readOutput(in: scene)
    #expect(try scene.witness.image(of: old).data == Scene.image)
    #expect(await !isInMemory("", scene))
    let next = await scene.submit { $0.delivery = .data }
    #expect(try scene.witness.image(of: next).data == Scene.otherImage)
  }

  @Test(arguments: [Loader.Tiers.memory, .disk])
  func `an image being read during a clear of one tier does not enter memory`(tiers: Loader.Tiers) async throws {
    let scene = try await scene()
    let id = await reading(in: scene) { clear(.key("a"), in: scene, tiers) }
    #expect(scene.witness.end(of: id) == "disk")
    #expect(await !isInMemory("", scene))
    let next = await scene.submit { $0.cacheMode = .onlyIfCached }
    #expect(scene.witness.end(of: next) == (tiers == .memory ? "disk" : "notCached"))
  }

  @Test(arguments: own) func `an image being stored during its clear does not enter memory`(filter: ClearFilter)
    async throws
  {
    let scene = try await Scene()
    let id = await load({ $0.url = "https://own.test/a" }, heldUpAt: .write, in: scene) { clear(filter, in: scene) }
    #expect(scene.witness.end(of: id) == "miss")
    #expect(await !isInMemory("", scene))
    #expect(scene.witness.end(of: await scene.submit { $0.cacheMode = .onlyIfCached }) == "notCached")
    #expect(await scene.isIdle)
  }

  @Test func `an image that a clear leaves on disk is decoded for earlier loads and stays there`() async throws {
    let scene = try await scene()
    let before = await scene.submit(load())
    let order = scene.decoder.next()
    await clear(.key("a"), in: scene, .memory)
    order.then(ScriptedDecoder.succeed(order.task))
    #expect(scene.witness.end(of: before) == "disk")
    let tier = scene.disk.tier
    #expect(try scene.disk.onDisk { tier.assumeIsolated { $0.counts.entries } } == 2)
    #expect(await scene.isIdle)
  }

  @Test(arguments: own) func `an image that the host stored before the clear is removed`(filter: ClearFilter)
    async throws
  {
    let scene = try await Scene()
    await put(in: scene) { clear(filter, in: scene) }
    #expect(await !isInMemory("", scene))
  }

  @Test(arguments: own) func `a load after the clear gets no lookup result of an earlier load`(filter: ClearFilter)
    async throws
  {
    let scene = try await scene(memory: 0)
    let gate = scene.disk.closeGate()
    let ids = await { @LoadingActor in
      // The response stored under the key has another URL.
      let url = "https://own.test/other"
      let change: @Sendable (inout LoadRequest) -> Void = {
        $0.url = url
        $0.cacheMode = .onlyIfCached
      }
      let before = scene.submit(change)
      clear(filter, in: scene)
      return [before, scene.submit(change)]
    }()
    gate.open()
    #expect(ids.map { scene.witness.end(of: $0) } == ["disk", "notCached"])
    #expect(await scene.isIdle)
  }

  @Test func `a response that arrives after a clear is stored, even for an earlier load`() async throws {
    let scene = try await scene()
    let before = await scene.submit(load())
    let order = scene.decoder.next()
    await clear(.key("a"), in: scene)
    let after = await scene.submit { $0.url = "https://own.test/a" }
    #expect(scene.witness.end(of: after) == "miss")
    // It looks up again, and finds the new response.
    order.then(.failure(.io("no such file")))
    scene.decoder.answer()
    #expect(scene.witness.end(of: before) == "memory")
    #expect(await isInMemory(Self.variant, scene))
    #expect(await scene.isIdle)
  }

  // MARK: - Blocked operations

  /// A load of the original. `event` happens while its file is being read.
  private func reading(in scene: Scene, _ event: @LoadingActor @Sendable () -> Void) async -> LoadID {
    await load({ _ in }, heldUpAt: .read, in: scene, event)
  }

  /// A load that has found its file and waits for the output.
  private func waitingToBeRead(in scene: Scene) async throws -> LoadID {
    let id = await { @LoadingActor in
      scene.loader.isOutputStuck = true
      return scene.submit { $0.delivery = .data }
    }()
    // The lookup ends, and the read is blocked.
    for _ in 0..<2 { try await scene.settle() }
    return id
  }

  @LoadingActor private func readOutput(in scene: Scene) { scene.loader.isOutputStuck = false }

  /// A load. `event` happens during one of its disk operations.
  private func load(
    _ change: @Sendable (inout LoadRequest) -> Void, heldUpAt place: FileSystem.Operation, in scene: Scene,
    _ event: @LoadingActor @Sendable () -> Void
  ) async -> LoadID {
    let (isThere, gate) = (Promise<Bool>(), Gate())
    scene.disk.cacheFault.withLock { fault in
      fault = { operation in
        guard operation == place else { return nil }
        isThere.fulfil(true)
        gate.pass()
        return nil
      }
    }
    let id = await scene.submit(change)
    _ = isThere.value
    await event()
    gate.open()
    return id
  }

  /// Stores an image for the host. `event` happens before that ends.
  private func put(in scene: Scene, _ event: @LoadingActor @Sendable () -> Void) async {
    let gate = scene.disk.closeGate()
    let stored = Promise<Bool>()
    await { @LoadingActor in
      let request = LoadRequest(
        url: "https://own.test/a", source: .inline(bytes: [], mediaType: ""), key: "a")
      scene.loader.put(.bytes(Scene.image), as: request) { stored.fulfil((try? $0.get()) != nil) }
      event()
    }()
    gate.open()
    #expect(stored.value)
  }
}

/// The pending clears that may have overtaken results from the disk.
struct PendingInvalidationsTests {
  private func response(_ key: String, storedAt: Int = 0) -> StoredResponse {
    StoredResponse(
      key: key, url: key, headers: [:], requestTime: 0, responseTime: 0, storedAt: storedAt, validatedAt: 0,
      expiresAt: 0, content: ImageDescription(mediaType: "image/png"))
  }

  private func clear(_ filter: ClearFilter, in tiers: Loader.Tiers = .all, at time: Int = 0) -> Clear {
    Clear(filter: filter, tiers: tiers, time: time)
  }

  @Test(arguments: Loader.Tiers.allCases)
  func `a candidate left in any tier is not marked as cleared`(tiers: Loader.Tiers) {
    var pendingInvalidations = PendingInvalidations()
    pendingInvalidations.begin(clear(.key("a"), in: tiers))
    var stored = response("a")
    stored.id = 1
    var candidates = [
      Candidate(response: response("a"), location: .memory), Candidate(response: stored, location: .memory),
      Candidate(response: stored, location: .disk), Candidate(response: stored, location: .readOnly(0)),
    ]
    #expect(pendingInvalidations.mark(&candidates) == 1)
    let cleared: [Bool] =
      switch tiers {
      case .memory: [true, false, false, false]
      case .disk: [false, false, true, false]
      case .all: [true, true, true, false]
      }
    #expect(candidates.map(\.isTransient) == cleared)
    #expect(pendingInvalidations.reach(stored))
  }

  @Test func `clears end in FIFO order and match nothing afterwards`() {
    var pendingInvalidations = PendingInvalidations()
    let keys = (1...100).map { "\($0)" }
    for key in keys { pendingInvalidations.begin(clear(.key(key))) }
    for key in keys {
      #expect(pendingInvalidations.reach(response(key)))
      pendingInvalidations.endFirst()
      #expect(!pendingInvalidations.reach(response(key)))
    }
    #expect(pendingInvalidations.count == 100)
  }

  @Test func `the number of the first matching clear is returned`() {
    var pendingInvalidations = PendingInvalidations()
    pendingInvalidations.begin(clear(.key("z")))
    pendingInvalidations.endFirst()
    for key in ["a", "b", "a"] { pendingInvalidations.begin(clear(.key(key))) }
    var candidates = ["b", "c", "a"].map { Candidate(response: response($0), location: .disk) }
    #expect(pendingInvalidations.mark(&candidates) == 2)
    #expect(candidates.map(\.isTransient) == [true, false, true])
    pendingInvalidations.endFirst()
    var late = [Candidate(response: response("a"), location: .disk)]
    #expect(pendingInvalidations.mark(&late) == 4)
    var untouched = [Candidate(response: response("c"), location: .disk)]
    #expect(pendingInvalidations.mark(&untouched) == nil)
  }

  @Test func `ages are measured at the time of the clear`() {
    var pendingInvalidations = PendingInvalidations()
    pendingInvalidations.begin(clear(.olderThan(seconds: 10), at: 100))
    #expect(pendingInvalidations.reach(response("a", storedAt: 90)))
    #expect(!pendingInvalidations.reach(response("a", storedAt: 91)))
  }
}
