import Foundation
import HTTPCaching
import Platform
import Testing
import Threads

@testable import ImageStore
@testable import Loading

/// The delivery of stored responses, without a loader.
struct DeliveryCoordinatorTests {
  @Test func `the first of a pass and an end decides`() {
    let (passed, closed) = (CommitPoint(), CommitPoint())
    #expect(passed.pass() && !passed.close() && passed.pass())
    #expect(closed.close() && !closed.pass() && closed.close())
  }

  // MARK: - Content

  @Test func `bytes in memory are delivered at once`() async throws {
    let bench = try await Bench()
    await bench.deliver(Scene.candidate, to: 1) { $0.delivery = .data }
    #expect(bench.told == ["1 ended: memory"])
    #expect(await bench.isIdle)
  }

  @Test(arguments: [LoadRequest.Tiers.all, .disk])
  func `a file is delivered, and read for the memory tier if the load wants that`(store: LoadRequest.Tiers)
    async throws
  {
    let bench = try await Bench()
    let stored = try bench.disk.storeImage()
    await bench.deliver(stored, to: 1) { $0.store = store }
    #expect(bench.events(1) == ["1 ended: disk"])
    #expect(await bench.inMemory.map(\.id) == (store == .all ? [stored.response.id] : []))
    #expect(await bench.client.image?.path == bench.disk.tier.absolutePath(of: stored.response))
    #expect(await bench.isIdle)
  }

  @Test func `a load whose file is gone looks once more, and past the cache`() async throws {
    let bench = try await Bench()
    let stored = try bench.disk.storeImage()
    try FileManager.default.removeItem(atPath: bench.disk.tier.absolutePath(of: stored.response))
    await bench.remember(stored.response)
    await bench.deliver(stored, to: 1)
    #expect(bench.events(1) == ["1 joins"])
    #expect(await bench.inMemory.isEmpty)
    #expect(await bench.client.load(LoadID(1)).bypassesCache)
  }

  @Test func `a load whose file is gone is served from memory if that has the bytes`() async throws {
    let bench = try await Bench()
    var stored = try bench.disk.storeImage()
    try FileManager.default.removeItem(atPath: bench.disk.tier.absolutePath(of: stored.response))
    (stored.bytes, stored.location) = (Scene.image, .memory)
    await bench.remember(stored.response)
    await bench.deliver(stored, to: 1)
    #expect(bench.events(1) == ["1 ended: memory"])
    #expect(await bench.inMemory.map(\.isOnDisk) == [false])
    let path = try #require(await bench.client.image?.path)
    #expect(try Data(contentsOf: URL(filePath: path)) == Data(Scene.image))
  }

  @Test func `a response is decoded first if the load needs that`() async throws {
    let bench = try await Bench()
    await bench.deliver(Scene.candidate, to: 1, Ask.for(Ask.small()))
    #expect(bench.told == ["1 needs encode for answer"])
    await { @LoadingActor in bench.client.load(LoadID(1)).hasRestarted = true }()
    await bench.deliver(Scene.candidate, to: 1)
    #expect(bench.told.last == "1 needs encode for answer, urgently")
  }

  @Test func `a load that has ended gets nothing`() async throws {
    let bench = try await Bench()
    let stored = try bench.disk.storeImage()
    let gate = bench.disk.closeGate()
    await bench.deliver(stored, to: 1)
    await bench.cancel(1)
    gate.open()
    try await bench.disk.settle()
    #expect(bench.told == ["1 ended: cancelled"])
    #expect(await bench.isIdle)
  }

  // MARK: - The cached event and the answer

  @Test func `an answer waits until the cached image has been read`() async throws {
    let bench = try await Bench()
    let stored = try bench.disk.storeImage()
    let gate = bench.disk.closeGate()
    await bench.show(stored, to: 1)
    await bench.answer(1)
    #expect(bench.told == ["1 leaves its job", "the event of 1 is urgent"])
    gate.open()
    #expect(bench.events(4).suffix(2) == ["1 shows disk", "1 ended: http"])
    #expect(await bench.isIdle)
  }

  @Test func `an answer waits until the cached image has been decoded, and no longer than until the deadline`()
    async throws
  {
    for end in ["shown", "failed", "lost", "overdue"] {
      let bench = try await Bench()
      let load = await bench.show(Scene.candidate, to: 1, Ask.for(Ask.small()))
      await bench.answer(1)
      await { @LoadingActor in
        switch end {
        case "shown":
          // A second decode of the same event.
          bench.deliveries.deliver(Scene.candidate, to: load, as: .disk, at: .cachedEvent)
          let image = LoadedImage(Scene.candidate.response, as: .disk)
          bench.deliveries.complete(load, .success(image), at: .cachedEvent)
        case "failed": bench.deliveries.complete(load, .failure(LoadError(.corrupt, "")), at: .cachedEvent)
        case "lost": bench.deliveries.lostSource(for: load, at: .cachedEvent)
        default: bench.deliveries.deadlinePassed(for: load)
        }
      }()
      var expected = ["1 needs encode for cachedEvent", "1 leaves its job", "the event of 1 is urgent"]
      if end == "shown" { expected += ["1 needs encode for cachedEvent, urgently", "1 shows disk"] }
      #expect(bench.told == expected + ["1 ended: http"], "\(end)")
      #expect(await bench.isIdle)
    }
  }

  @Test func `a deadline without an answer is a timeout`() async throws {
    let bench = try await Bench()
    let load = await bench.show(Scene.candidate, to: 1, Ask.for(Ask.small()))
    await bench.deliveries.deadlinePassed(for: load)
    #expect(bench.told.last == "1 ended: timeout")
    #expect(await bench.isIdle)
  }

  @Test func `a load shows one image, and no pixels`() async throws {
    let bench = try await Bench()
    await bench.show(Scene.candidate, to: 1) { $0.delivery = .data }
    await bench.show(Scene.candidate, to: 1)
    await bench.show(Scene.candidate, to: 2, Ask.for(pixels: true))
    #expect(bench.told == ["1 shows memory"])
    for number: Int32 in 1...2 { await bench.answer(number) }
    #expect(bench.told.suffix(2) == ["1 ended: http", "2 ended: http"])
    #expect(await bench.isIdle)
  }

  // MARK: - The output

  @Test func `results with data wait for the output in their order, others do not`() async throws {
    let bench = try await Bench()
    await { @LoadingActor in bench.deliveries.isOutputBlocked = true }()
    for number: Int32 in 1...3 { await bench.deliver(Scene.candidate, to: number) { $0.delivery = .data } }
    await bench.show(Scene.candidate, to: 4) { $0.delivery = .data }
    await bench.answer(4)
    await bench.deliver(Scene.candidate, to: 5) { $0.delivery = .none }
    await bench.cancel(2)
    let before = [
      "1 leaves its job", "2 leaves its job", "3 leaves its job", "4 leaves its job", "the event of 4 is urgent",
      "5 ended: memory", "2 ended: cancelled",
    ]
    #expect(bench.told == before)
    await { @LoadingActor in bench.deliveries.isOutputBlocked = false }()
    #expect(bench.told == before + ["1 ended: memory", "3 ended: memory", "4 shows memory", "4 ended: http"])
    #expect(await bench.isIdle)
  }

  @Test func `no file is read for an output that is blocked`() async throws {
    let bench = try await Bench()
    let stored = try bench.disk.storeImage()
    await { @LoadingActor in bench.deliveries.isOutputBlocked = true }()
    for number: Int32 in 1...2 { await bench.deliver(stored, to: number) { $0.delivery = .data } }
    for _ in 0..<2 { try await bench.disk.settle() }
    #expect(bench.told.isEmpty)
    await bench.cancel(1)
    await { @LoadingActor in bench.deliveries.isOutputBlocked = false }()
    #expect(bench.events(2) == ["1 ended: cancelled", "2 ended: disk"])
    #expect(await bench.isIdle)
  }
}

/// Deliveries from a disk, with a client that records.
private final class Bench: Sendable {
  let disk: DiskFixture
  let client: Client
  let cache: CacheCoordinator
  let deliveries: DeliveryCoordinator

  init() async throws {
    let disk = try DiskFixture()
    self.disk = disk
    (client, cache, deliveries) = await { @LoadingActor in
      let cache = disk.makeCache()
      let deliveries = DeliveryCoordinator(cache: cache, storage: disk.storage)
      let client = Client(deliveries)
      deliveries.client = client
      return (client, cache, deliveries)
    }()
  }

  @LoadingActor
  func deliver(_ candidate: Candidate, to number: Int32, _ change: (inout LoadRequest) -> Void = { _ in }) {
    let status: CacheStatus = candidate.location == .memory ? .memory : .disk
    deliveries.deliver(candidate, to: client.load(LoadID(number), change), as: status, at: .answer)
  }

  @LoadingActor @discardableResult
  func show(_ candidate: Candidate, to number: Int32, _ change: (inout LoadRequest) -> Void = { _ in }) -> ActiveLoad {
    let load = client.load(LoadID(number), change)
    deliveries.show(candidate, to: load, as: candidate.location == .memory ? .memory : .disk)
    return load
  }

  /// Answers a load with an error.
  @LoadingActor func answer(_ number: Int32) {
    deliveries.complete(client.load(LoadID(number)), .failure(LoadError(.http, "404")), at: .answer)
  }

  @LoadingActor func cancel(_ number: Int32) {
    client.end(client.load(LoadID(number)), .failure(LoadError(.cancelled, "")))
  }

  @LoadingActor func remember(_ response: StoredResponse) { cache.remember(response, Scene.image) }

  /// The responses of `a` in the memory tier.
  @LoadingActor var inMemory: [StoredResponse] { cache.memory.peek(at: "a").map(\.response) }

  var told: [String] { client.told.all }

  /// Waits until the client has been called so many times, and returns the calls.
  func events(_ count: Int) -> [String] { client.told.all(atLeast: count) }

  @LoadingActor var isIdle: Bool { deliveries.isEmpty }
}

@LoadingActor
private final class Client: DeliveryClient, LoadObserver {
  nonisolated let told = Promise<String>()
  /// The last image that ended a load.
  private(set) var image: LoadedImage?
  private let deliveries: DeliveryCoordinator
  private var loads: [LoadID: ActiveLoad] = [:]

  init(_ deliveries: DeliveryCoordinator) { self.deliveries = deliveries }

  func load(_ id: LoadID, _ change: (inout LoadRequest) -> Void = { _ in }) -> ActiveLoad {
    if let load = loads[id] { return load }
    let load = ActiveLoad(id, for: self, change)
    loads[id] = load
    return load
  }

  private func tell(_ event: String) { told.fulfil(event) }

  func load(_ id: LoadID, did event: LoadEvent) {
    if case .cached(let image) = event { tell("\(id.slot) shows \(image.cache.rawValue)") }
  }

  func load(_ id: LoadID, ended result: Result<LoadedImage, LoadError>) {}

  // MARK: - DeliveryClient

  func activeLoad(_ id: LoadID) -> ActiveLoad? { loads[id] }

  func end(_ load: ActiveLoad, _ result: Result<LoadedImage, LoadError>) {
    loads[load.id] = nil
    deliveries.remove(load.id)
    switch result {
    case .success(let image):
      self.image = image
      tell("\(load.id.slot) ended: \(image.cache.rawValue)")
    case .failure(let error): tell("\(load.id.slot) ended: \(error.kind.rawValue)")
    }
  }

  func unsubscribe(_ load: ActiveLoad) { tell("\(load.id.slot) leaves its job") }
  func join(_ load: ActiveLoad) { tell("\(load.id.slot) joins") }
  func transferAgain(_ load: ActiveLoad, mayStart: Bool) -> Bool { false }

  func process(
    _ candidate: Candidate, for load: ActiveLoad, _ step: DecodePlan.Step, as status: CacheStatus,
    at stage: DeliveryStage, isUrgent: Bool
  ) {
    tell("\(load.id.slot) needs \(step) for \(stage)\(isUrgent ? ", urgently" : "")")
  }

  func boostCachedEvent(of load: ActiveLoad, until limit: Instant) {
    tell("the event of \(load.id.slot) is urgent")
  }
}
