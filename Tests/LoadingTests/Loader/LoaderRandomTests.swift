import HTTPCaching
import ImageStore
import Testing
import Threads

@testable import Loading

/// Random commands to a loader: each load ends exactly once, and nothing is left.
struct LoaderRandomTests {
  @Test(arguments: 0..<8) func `each load ends exactly once under random commands`(seed: Int) async throws {
    let scene = try await Scene(memory: seed % 2 == 0 ? 1 << 20 : 0)
    var submitted: [LoadID] = []
    for _ in 0..<300 {
      switch Int.random(in: 0..<10) {
      case 0..<5:
        submitted.append(
          await scene.submit { request in
            request.key = ["a", "b"].randomElement()!
            request.delivery = [.path, .data, .none].randomElement()!
            request.cacheMode = [.default, .refresh, .reload, .noStore, .noCache, .onlyIfCached].randomElement()!
            request.slot = [nil, nil, "slot"].randomElement()!
            request.priority = Priority.allCases.randomElement()!
          })
      case 5: if let id = submitted.randomElement() { await scene.loader.cancel(id) }
      case 6: await scene.loader.clear(.key("a"), in: [.memory, .disk, .all].randomElement()!) { _ in }
      case 7: await { @LoadingActor in scene.loader.isOutputStuck.toggle() }()
      case 8: _ = await scene.loader.prioritize(.all, Priority.allCases.randomElement()!)
      default: _ = await scene.loader.advance()
      }
      if Int.random(in: 0..<20) == 0 { try await scene.settle() }
    }
    await { @LoadingActor in scene.loader.isOutputStuck = false }()
    for _ in 0..<20 { try await scene.settle() }
    _ = await scene.loader.cancel(.all)
    for _ in 0..<20 { try await scene.settle() }
    let ends = scene.witness.ends.withLock { $0 }
    #expect(submitted.allSatisfy { ends[$0]?.count == 1 })
    #expect(scene.witness.tardy.withLock { $0.isEmpty })
    #expect(await scene.isIdle)
  }
}
