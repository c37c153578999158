import Platform
import Testing
import Threads

@Suite struct ThreadExecutorTests {
  @Test func `work runs in the order in which it was added`() async {
    let executor = ThreadExecutor(name: "test")
    let seen = Locked<[Int]>([])
    for number in 0..<10_000 {
      executor.run { seen.withLock { $0.append(number) } }
    }
    executor.stop()
    #expect(seen.withLock { $0 } == Array(0..<10_000))
  }

  @Test func `the hook runs after each batch and at the time that it returned`() async {
    let executor = ThreadExecutor(name: "test")
    let runs = Locked(0)
    executor.setAfterBatch {
      let run = runs.withLock { runs in
        runs += 1
        return runs
      }
      runs.notify()
      return run < 5 ? Instant.now.advanced(by: .milliseconds(1)) : nil
    }
    #expect(runs.wait { $0 >= 5 ? true : nil } == true)
    executor.stop()
  }

  @Test func `a closure on the executor may enter an actor of the executor`() async {
    let counter = Counter()
    counter.executor.run { counter.assumeIsolated { $0.count += 1 } }
    #expect(await counter.count == 1)
    counter.executor.stop()
  }

  @Test func `a wait ends at its timeout`() {
    #expect(Locked(0).wait(timeout: .milliseconds(1)) { $0 == 1 ? true : nil } == nil)
  }
}

private actor Counter {
  let executor = ThreadExecutor(name: "counter")
  var count = 0
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
}
