import Foundation
import HTTPCaching
import ImageCodec
import Platform
import Testing
import Threads

@testable import ImageStore
@testable import Loading

/// The decodes of loads, without a loader.
struct DecodeCoordinatorTests {
  // MARK: - Joining

  @Test func `equal loads share a decode and are answered in the order of their IDs`() async throws {
    let bench = try await Bench()
    for number: Int32 in [2, 1] { await bench.process(number, Ask.for(Ask.small())) }
    await bench.process(3, Ask.for(Ask.small(9)))
    #expect(await bench.decodes.memory.count == 2 * Scene.image.count)
    #expect(await bench.decodes.arrived[.normal] == 2)
    let (shared, own) = (bench.decoder.next(), bench.decoder.next())
    shared.then(ScriptedDecoder.succeed(shared.task))
    #expect(bench.events(2) == ["1 answer: miss", "2 answer: miss"])
    own.then(ScriptedDecoder.succeed(own.task))
    #expect(bench.events(3).last == "3 answer: miss")
    #expect(await bench.inMemory(Ask.small().canonical).count == 1)
    #expect(await bench.inMemory(Ask.small(9).canonical).count == 1)
    #expect(await bench.isIdle)
  }

  @Test func `a load that subscribes while the variant is stored gets it too`() async throws {
    let bench = try await Bench()
    await bench.process(1, Ask.for(Ask.small()))
    let order = bench.decoder.next()
    let gate = bench.disk.closeGate()
    order.then(ScriptedDecoder.succeed(order.task))
    await { @LoadingActor in }()
    await bench.process(2, Ask.for(Ask.small()))
    gate.open()
    #expect(bench.events(2) == ["1 answer: miss", "delivered to 2 answer"])
    #expect(bench.decoder.orderCount == 1)
    #expect(await bench.isIdle)
  }

  @Test func `a variant in memory is delivered without a decode`() async throws {
    let bench = try await Bench()
    var variant = Scene.response
    variant.variant = Ask.small().canonical
    await bench.remember(variant)
    await bench.process(1, Ask.for(Ask.small()), at: .cachedEvent)
    #expect(bench.events(1) == ["delivered to 1 cachedEvent"])
    #expect(bench.decoder.orderCount == 0)
    #expect(await bench.isIdle)
  }

  @Test func `a check is noted in the cache, and its load goes on`() async throws {
    let bench = try await Bench()
    await bench.remember(Scene.response)
    await bench.process(1, Ask.for(checks: true))
    bench.decoder.answer()
    #expect(bench.events(1) == ["delivered to 1 answer"])
    #expect(await bench.inMemory().map(\.metadata?.isChecked) == [true])
    #expect(await bench.isIdle)
  }

  // MARK: - Failures

  @Test func `a failure is told once to every load`() async throws {
    let bench = try await Bench()
    for number: Int32 in 1...3 { await bench.process(number, Ask.for(Ask.small())) }
    await bench.process(3, Ask.for(Ask.small()), at: .cachedEvent)
    bench.decoder.answer { _ in .failure(.crashed) }
    try await bench.disk.settle()
    #expect(
      bench.events(4) == [
        "1 answer: decoderCrashed", "2 answer: decoderCrashed", "3 cachedEvent: decoderCrashed",
        "3 answer: decoderCrashed",
      ])
    #expect(await bench.isIdle)
  }

  @Test func `a corrupt file is not decoded again until failures are forgotten`() async throws {
    let bench = try await Bench()
    let stored = try bench.disk.storeImage()
    await bench.process(1, Ask.for(Ask.small()), from: stored)
    bench.decoder.answer { _ in .failure(.corrupt("cut")) }
    _ = bench.events(1)
    await bench.process(2, Ask.for(Ask.small()), from: stored)
    #expect(bench.events(2).last == "2 answer: corrupt")
    #expect(bench.decoder.orderCount == 1)
    #expect(await bench.decodes.forgetFailures() == 1)
    await bench.process(3, Ask.for(Ask.small()), from: stored)
    bench.decoder.answer()
    #expect(bench.events(3).last == "3 answer: miss")
    #expect(await bench.isIdle)
  }

  @Test(arguments: [true, false])
  func `a load looks once more for a source that is lost, and fails the second time`(isLostEarly: Bool) async throws {
    let bench = try await Bench()
    var candidate = try bench.disk.storeImage()
    if isLostEarly { candidate.response.id += 1 }
    await bench.remember(candidate.response)
    let gate = bench.disk.closeGate()
    await bench.process(1, Ask.for(Ask.small()), from: candidate)
    await bench.process(1, Ask.for(Ask.small()), from: candidate, at: .cachedEvent)
    gate.open()
    if !isLostEarly { bench.decoder.answer { _ in .failure(.io("no such file")) } }
    #expect(bench.events(2) == ["1 cachedEvent: io", "lost for 1 answer"])
    #expect(await bench.inMemory().map(\.isOnDisk) == [false])
    await bench.process(1, Ask.for(Ask.small()), from: candidate)
    if !isLostEarly { bench.decoder.answer { _ in .failure(.io("no such file")) } }
    #expect(bench.events(3).last == "1 answer: io")
    #expect(await bench.isIdle)
  }

  @Test(arguments: [CacheStatus.memory, .disk, .stale, .revalidated])
  func `a load that the cache answers has a corrupt original transferred again, once`(status: CacheStatus) async throws
  {
    let bench = try await Bench()
    let stored = try bench.disk.storeImage()
    await { @LoadingActor in bench.client.mayTransfer = true }()
    for stage in [DeliveryStage.cachedEvent, .answer] {
      await bench.process(1, Ask.for(Ask.small()), from: stored, as: status, at: stage)
    }
    bench.decoder.answer { _ in .failure(.corrupt("cut")) }
    #expect(bench.events(2) == ["1 cachedEvent: corrupt", "1 is transferred again"])
    // The same operation, and another, on what is still stored.
    await bench.process(2, Ask.for(Ask.small()), from: stored, as: status)
    #expect(bench.events(3).last == "2 answer: corrupt")
    await bench.process(3, Ask.for(checks: true), from: stored, as: status)
    bench.decoder.answer { _ in .failure(.corrupt("cut")) }
    #expect(bench.events(4).last == "3 answer: corrupt")
    _ = await bench.decodes.forgetFailures()
    await bench.process(4, Ask.for(checks: true), from: stored, as: status)
    bench.decoder.answer { _ in .failure(.corrupt("cut")) }
    #expect(bench.events(5).last == "4 is transferred again")
    #expect(await bench.isIdle)
  }

  @Test func `a corrupt original that has just arrived is not transferred again, nor is one of the host`() async throws
  {
    for (status, isOfHost) in [(CacheStatus.miss, false), (.disk, true)] {
      let bench = try await Bench()
      var stored = try bench.disk.storeImage()
      if isOfHost { stored.response.headers = StoredResponse.headersOfHost("image/gif", at: 0) }
      await { @LoadingActor in bench.client.mayTransfer = true }()
      await bench.process(1, Ask.for(checks: true), from: stored, as: status)
      bench.decoder.answer { _ in .failure(.corrupt("cut")) }
      #expect(bench.events(1) == ["1 answer: corrupt"])
      await bench.process(2, Ask.for(checks: true), from: stored, as: .disk)
      #expect(bench.events(2).last == "2 answer: corrupt")
      #expect(await bench.isIdle)
    }
  }

  // MARK: - Priority, deadlines and clears

  @Test func `a decode has the highest priority of the loads that wait for it`() async throws {
    let bench = try await Bench()
    await bench.process(1, Ask.for(Ask.small()))
    let order = bench.decoder.next()
    await bench.process(2) {
      Ask.for(Ask.small())(&$0)
      $0.priority = .high
    }
    #expect(bench.decoder.priority(of: order) == Priority.high.rawValue)
    #expect(await bench.decodes.setPriority(.lowest, of: LoadID(2)))
    #expect(bench.decoder.priority(of: order) == Priority.normal.rawValue)
    #expect(await !bench.decodes.setPriority(.lowest, of: LoadID(2)), "it has that priority")
    #expect(await !bench.decodes.setPriority(.lowest, of: LoadID(3)), "it waits for no decode")
    await bench.decodes.boostCachedEvent(of: LoadID(1), until: .now)
    #expect(bench.decoder.priority(of: order) == Priority.normal.rawValue, "it waits for no event")
    await bench.leave(1)
    #expect(bench.decoder.priority(of: order) == Priority.lowest.rawValue)
    await bench.leave(2)
    bench.decoder.waitForCancel(of: order)
    order.then(ScriptedDecoder.succeed(order.task))
    // The loading thread gets the result, and has the disk thread remove the output.
    try await bench.disk.settle()
    try await bench.disk.settle()
    #expect(bench.events(0).isEmpty)
    #expect(bench.disk.files(under: "scratch").isEmpty, "the output of an abandoned decode is removed")
    #expect(await bench.isIdle)
  }

  @Test func `a boosted event is urgent, and its load waits no longer than the limit`() async throws {
    let bench = try await Bench()
    await bench.process(1, Ask.for(Ask.small()), at: .cachedEvent)
    let order = bench.decoder.next()
    let now = Instant.now
    await bench.decodes.boostCachedEvent(of: LoadID(1), until: now + .seconds(30))
    #expect(bench.decoder.priority(of: order) == Priority.highest.rawValue)
    #expect(try #require(await bench.decodes.endOverdue(at: now + .seconds(29))) >= now + .seconds(29))
    #expect(await bench.decodes.endOverdue(at: now + .seconds(31)) == nil)
    #expect(bench.events(1) == ["deadline of 1"])
    bench.decoder.waitForCancel(of: order)
    #expect(await bench.isIdle)
  }

  @Test func `a deadline ends only loads that still wait`() async throws {
    let bench = try await Bench()
    for number: Int32 in 1...2 {
      await bench.process(number) {
        Ask.for(Ask.small())(&$0)
        $0.deadline = .seconds(5)
      }
    }
    await bench.leave(1)
    #expect(await bench.decodes.endOverdue(at: .now + .seconds(6)) == nil)
    #expect(bench.events(1) == ["deadline of 2"])
    #expect(await bench.isIdle)
  }

  @Test func `a clear lets a running decode end, but neither caches nor shares its result`() async throws {
    let bench = try await Bench()
    await bench.process(1, Ask.for(Ask.small()))
    let before = bench.decoder.next()
    await bench.decodes.detach(Clear(filter: .key("b"), tiers: .all, time: 0))
    await bench.process(2, Ask.for(Ask.small()))
    await bench.decodes.detach(Clear(filter: .key("a"), tiers: .all, time: 0))
    await bench.process(3, Ask.for(Ask.small()))
    let after = bench.decoder.next()
    before.then(ScriptedDecoder.succeed(before.task))
    #expect(bench.events(2) == ["1 answer: miss", "2 answer: miss"])
    #expect(await bench.inMemory(Ask.small().canonical).isEmpty)
    after.then(ScriptedDecoder.succeed(after.task))
    #expect(bench.events(3).last == "3 answer: miss")
    #expect(await bench.inMemory(Ask.small().canonical).count == 1)
    #expect(await bench.isIdle)
  }
}

/// Decodes with a scripted decoder, a disk, and a client that records.
private final class Bench: Sendable {
  let disk: DiskFixture
  let decoder = ScriptedDecoder()
  let client: Client
  let decodes: DecodeCoordinator

  init() async throws {
    let disk = try DiskFixture()
    self.disk = disk
    (client, decodes) = await { @LoadingActor [decoder] in
      let decodes = DecodeCoordinator(
        decoder: decoder, cache: disk.makeCache(), storage: disk.storage, maxPixels: 1000)
      let client = Client(decodes)
      decodes.client = client
      return (client, decodes)
    }()
  }

  @LoadingActor
  func process(
    _ number: Int32, _ change: (inout LoadRequest) -> Void, from candidate: Candidate? = nil,
    as status: CacheStatus = .miss, at stage: DeliveryStage = .answer
  ) {
    let candidate = candidate ?? Scene.candidate
    let load = client.load(LoadID(number), change)
    guard let step = load.request.processing?.step(for: candidate.response) else { return }
    decodes.process(candidate, for: load, step, as: status, at: stage, isUrgent: false)
  }

  @LoadingActor func remember(_ response: StoredResponse) { decodes.cache.remember(response, Scene.image) }

  /// The responses of a variant of `Scene.response` in the memory tier.
  @LoadingActor func inMemory(_ variant: String = "") -> [StoredResponse] {
    decodes.cache.memory.peek(at: "a", variant: variant).map(\.response)
  }

  @LoadingActor func leave(_ number: Int32) { client.end(LoadID(number)) }

  /// Waits until the client has been called so many times, and returns the calls.
  func events(_ count: Int) -> [String] { client.told.all(atLeast: count) }

  @LoadingActor var isIdle: Bool { decodes.isEmpty && decodes.memory.count == 0 && decodes.arrived == PriorityCounts() }
}

@LoadingActor
private final class Client: DecodeClient {
  nonisolated let told = Promise<String>()
  /// Whether an image may be transferred again.
  var mayTransfer = false
  private let decodes: DecodeCoordinator
  private var loads: [LoadID: ActiveLoad] = [:]

  init(_ decodes: DecodeCoordinator) { self.decodes = decodes }

  func load(_ id: LoadID, _ change: (inout LoadRequest) -> Void) -> ActiveLoad {
    if let load = loads[id] { return load }
    let load = ActiveLoad(id, change)
    loads[id] = load
    return load
  }

  func end(_ id: LoadID) {
    loads[id] = nil
    decodes.unsubscribe(id)
  }

  private func tell(_ event: String) { told.fulfil(event) }

  // MARK: - DecodeClient

  func activeLoad(_ id: LoadID) -> ActiveLoad? { loads[id] }

  func deliver(_ candidate: Candidate, to load: ActiveLoad, as status: CacheStatus, at stage: DeliveryStage) {
    tell("delivered to \(load.id.slot) \(stage)")
  }

  func complete(_ load: ActiveLoad, _ result: Result<LoadedImage, LoadError>, at stage: DeliveryStage) {
    switch result {
    case .success(let image): tell("\(load.id.slot) \(stage): \(image.cache.rawValue)")
    case .failure(let error): tell("\(load.id.slot) \(stage): \(error.kind.rawValue)")
    }
    if stage == .answer { end(load.id) }
  }

  func transferAgain(_ load: ActiveLoad, mayStart: Bool) -> Bool {
    guard mayStart, mayTransfer else { return false }
    tell("\(load.id.slot) is transferred again")
    return true
  }

  func lostSource(for load: ActiveLoad, at stage: DeliveryStage) { tell("lost for \(load.id.slot) \(stage)") }

  func deadlinePassed(for load: ActiveLoad) {
    tell("deadline of \(load.id.slot)")
    end(load.id)
  }
}
