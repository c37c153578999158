import Foundation
import HTTPCaching
import HTTPTransport
import HTTPTypes
import Testing
import Threads

@testable import ImageStore
@testable import Loading

/// Loads under events that occur while the disk thread is blocked.
struct LoaderTests {
  @Test func `scans that a restarted transfer repeats get no second preview`() async throws {
    let scene = try await Scene()
    let gate = scene.disk.closeGate()
    let id = await scene.submit { $0.events = .preview }
    await { @LoadingActor in
      for scan in [2, 1, 2, 3] {
        scene.loader.registry[id]?.emit(.preview(path: "", width: 1, height: 1, scan: scan))
      }
    }()
    gate.open()
    #expect(scene.witness.end(of: id) == "miss")
    #expect(scene.witness.scans.withLock { $0[id] } == [2, 3])
  }

  @Test func `images that have arrived and wait for a decoder count against further transfers`() async throws {
    let scene = try await Scene()
    @LoadingActor func undecoded() -> Int {
      _ = scene.loader.advance()
      return scene.loader.jobs.scheduler.undecoded[.normal]
    }
    let id = await scene.submit(Ask.for(Ask.small()))
    let order = scene.decoder.next()
    #expect(await undecoded() == 1)
    order.then(ScriptedDecoder.succeed(order.task))
    #expect(scene.witness.end(of: id) == "miss")
    #expect(await undecoded() == 0)
  }

  /// The phase of a load while the disk thread is blocked.
  enum Phase: CaseIterable { case lookingUp, storing, delivering }

  /// A load that stays in a phase until the gate is opened.
  private func load(in phase: Phase, of scene: Scene, _ change: @Sendable (inout LoadRequest) -> Void = { _ in })
    async throws -> (id: LoadID, gate: Gate)
  {
    switch phase {
    case .lookingUp:
      let gate = scene.disk.closeGate()
      return (await scene.submit(change), gate)
    case .storing:
      let first = scene.disk.closeGate()
      let id = await scene.submit(change)
      let isLookedUp = Promise<Bool>()
      scene.disk.executor.run { isLookedUp.fulfil(true) }
      let second = scene.disk.closeGate()
      first.open()
      // Later calls to the loader follow the result of the lookup.
      _ = isLookedUp.value
      return (id, second)
    case .delivering:
      let before = await scene.submit(change)
      #expect(scene.witness.end(of: before) == "miss")
      let gate = scene.disk.closeGate()
      return (
        await scene.submit {
          change(&$0)
          $0.saveTo = scene.disk.directory + "/copy.gif"
        }, gate
      )
    }
  }

  @Test(arguments: Phase.allCases) func `a load can be cancelled in every phase, and ends once`(phase: Phase)
    async throws
  {
    let scene = try await Scene()
    let (id, gate) = try await load(in: phase, of: scene)
    let cancelled = await { @LoadingActor in [scene.loader.cancel(.all), scene.loader.cancel(.all)] }()
    #expect(cancelled == [1, 0])
    gate.open()
    let next = await scene.submit()
    _ = scene.witness.end(of: next)
    #expect(scene.witness.ends.withLock { $0[id] } == ["cancelled"])
    #expect(await scene.isIdle)
  }

  @Test(arguments: [Phase.lookingUp, .storing]) func `a deadline holds in every phase`(phase: Phase) async throws {
    let scene = try await Scene()
    let (id, gate) = try await load(in: phase, of: scene) { $0.deadline = .nanoseconds(1) }
    _ = await scene.loader.advance()
    gate.open()
    #expect(scene.witness.end(of: id) == "timeout")
    let next = await scene.submit()
    _ = scene.witness.end(of: next)
    #expect(scene.witness.ends.withLock { $0[id] } == ["timeout"])
    #expect(await scene.isIdle)
  }

  @Test(arguments: Phase.allCases)
  func `a load after clear sees no earlier response`(phase: Phase) async throws {
    let scene = try await Scene()
    let (id, gate) = try await load(in: phase, of: scene)
    let cleared = Promise<Int>()
    let next = await { @LoadingActor in
      scene.loader.clear(.all, in: .all) { result in cleared.fulfil((try? result.get().removed) ?? 0) }
      return scene.submit()
    }()
    gate.open()
    #expect(scene.witness.end(of: next) == "miss")
    _ = scene.witness.end(of: id)
    #expect(await scene.isIdle)
  }

  @Test func `a load that joins while others are being served is still checked against its digest`() async throws {
    let scene = try await Scene()
    let (id, gate) = try await load(in: .storing, of: scene)
    let late = await (scene.submit(), scene.submit { $0.digest = [UInt8](repeating: 0, count: 32) })
    gate.open()
    #expect(scene.witness.end(of: id) == "miss")
    #expect(scene.witness.end(of: late.0) == "miss")
    #expect(scene.witness.end(of: late.1) == "digestMismatch")
    #expect(await scene.isIdle)
  }

  @Test func `a load with another digest does not keep the image from the others`() async throws {
    let scene = try await Scene()
    let gate = scene.disk.closeGate()
    let ids = await (scene.submit { $0.digest = [UInt8](repeating: 0, count: 32) }, scene.submit())
    gate.open()
    #expect(scene.witness.end(of: ids.0) == "digestMismatch")
    #expect(scene.witness.end(of: ids.1) == "miss")
    #expect(await scene.isIdle)
  }

  @Test func `a slot ends with the last data URL that was loaded in it`() async throws {
    let scene = try await Scene()
    let gate = scene.disk.closeGate()
    let ids = await ["a", "a", "b"].asyncMap { key in
      await scene.submit {
        $0.key = key
        $0.slot = "s"
      }
    }
    gate.open()
    #expect(scene.witness.end(of: ids[2]) == "miss")
    #expect(ids.prefix(2).map { scene.witness.end(of: $0) } == ["cancelled", "cancelled"])
  }

  @Test func `ten thousand loads leave no state`() async throws {
    let scene = try await Scene(memory: 0)
    for round in 0..<10 {
      let ids = await { @LoadingActor in
        (0..<1000).map { number in
          scene.submit {
            $0.key = "\(number % 50)"
            $0.slot = number % 3 == 0 ? "\(number % 7)" : nil
            $0.cacheMode = [.default, .reload, .noStore, .refresh, .onlyIfCached][(number + round) % 5]
            $0.delivery = number % 2 == 0 ? .path : .data
          }
        }
      }()
      _ = await { @LoadingActor in ids.filter { $0.serial % 5 == 0 }.map { scene.loader.cancel($0) } }()
      for id in ids { _ = scene.witness.end(of: id) }
      #expect(scene.witness.ends.withLock { ends in ids.allSatisfy { ends[$0]?.count == 1 } })
    }
    #expect(await scene.isIdle)
  }
}

extension Sequence {
  func asyncMap<Result>(_ transform: (Element) async -> Result) async -> [Result] {
    var results: [Result] = []
    for element in self { results.append(await transform(element)) }
    return results
  }
}
