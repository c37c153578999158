import Testing
import Threads

@testable import Loading

struct PrefetchTests {
  @Test func `other work gets its turn between the batches of refused items`() async throws {
    let scene = try await Scene()
    await scene.put(Scene.image)
    let count = 1000
    let record = PrefetchRecord()
    let failedAtStart = await { @LoadingActor in
      let refused = (0..<count).map { (url: "\($0)", error: LoadError(.invalidParams, "refused")) }
      scene.loader.prefetch(
        [], refused: refused, as: scene.loader.makeID(), group: nil, priority: .normal, for: record)
      // The second batch has been posted. This work runs after it and before the third.
      LoadingActor.run {
        let image = scene.loader.serveFromMemory(scene.request { $0.delivery = .data })
        record.turn.fulfil((image != nil, record.failed.count, record.summary.count))
      }
      return record.failed.count
    }()
    let turn = record.turn.value
    #expect(turn.isServed && turn.endCount == 0)
    #expect(0 < failedAtStart && failedAtStart < turn.failedCount && turn.failedCount < count)
    let summary = record.summary.value
    #expect(summary?.total == count && summary?.failed == count)
    #expect(summary?.errors.count == 100)
    #expect(await record.failed == (0..<count).map(String.init))
    #expect(await scene.isIdle)
  }
}

/// The ends of the items of a prefetch, in order, and its result.
@LoadingActor private final class PrefetchRecord: PrefetchObserver {
  var failed: [String] = []
  /// The state when the load between two batches has been submitted.
  nonisolated let turn = Promise<(isServed: Bool, failedCount: Int, endCount: Int)>()
  nonisolated let summary = Promise<Prefetch.Summary?>()

  nonisolated init() {}

  func prefetch(_ id: LoadID, progressed progress: Prefetch.Progress) {}

  func prefetch(_ id: LoadID, item: Prefetch.Item, did event: LoadEvent) {}

  func prefetch(_ id: LoadID, item: Prefetch.Item, ended result: Result<LoadedImage, LoadError>) {
    failed.append(item.url)
  }

  func prefetch(_ id: LoadID, ended result: Result<Prefetch.Summary, LoadError>) { summary.fulfil(try? result.get()) }
}
