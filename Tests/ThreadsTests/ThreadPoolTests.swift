import Testing
import Threads

struct ThreadPoolTests {
  private struct State {
    var running = 0
    var most = 0
    var done = 0
    var mayEnd = false
  }

  @Test func `work that blocks holds up none but what is beyond the limit`() {
    let pool = ThreadPool(name: "test", limit: 3)
    let state = Locked(State())
    func block() {
      pool.run {
        state.withLock {
          $0.running += 1
          $0.most = max($0.most, $0.running)
        }
        state.notify()
        _ = state.wait { $0.mayEnd ? () : nil }
        state.withLock {
          $0.running -= 1
          $0.done += 1
        }
        state.notify()
      }
    }
    for _ in 0..<2 { block() }
    _ = state.wait { $0.running == 2 ? () : nil }
    let others = Locked(0)
    for _ in 0..<100 {
      pool.run {
        others.withLock { $0 += 1 }
        others.notify()
      }
    }
    _ = others.wait { $0 == 100 ? () : nil }
    for _ in 0..<8 { block() }
    _ = state.wait { $0.running == 3 ? () : nil }
    state.withLock { $0.mayEnd = true }
    state.notify()
    _ = state.wait { $0.done == 10 ? () : nil }
    #expect(state.withLock { $0.most } == 3)
  }
}
