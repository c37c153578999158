import Platform
import Testing

@testable import Loading

struct TimerQueueTests {
  private let start = Instant.now

  private func after(_ milliseconds: Int) -> Instant {
    start.advanced(by: .milliseconds(milliseconds))
  }

  @Test func `the earliest entry is dequeued first, and no entry before it is due`() {
    var heap = TimerQueue<String>()
    heap.add("later", at: after(20))
    heap.add("soon", at: after(10))
    #expect(heap.next == after(10))
    #expect(heap.take(dueAt: after(9))?.payload == nil)
    #expect(heap.take(dueAt: after(10))?.payload == "soon")
    #expect(heap.take(dueAt: after(10))?.payload == nil)
    #expect(heap.next == after(20))
    #expect(heap.take(dueAt: after(1000))?.payload == "later")
    #expect(heap.next == nil)
    #expect(heap.take(dueAt: after(1000))?.payload == nil)
  }

  @Test func `a thousand shuffled entries are dequeued in order of time`() {
    var chance = SeededChance(state: 7)
    var heap = TimerQueue<Int>()
    let times = (0..<1000).map { _ in Int.random(in: 0..<300, using: &chance) }
    for time in times { heap.add(time, at: after(time)) }
    var taken: [Int] = []
    while let (_, time) = heap.take(dueAt: after(300)) { taken.append(time) }
    #expect(taken == times.sorted())
  }

  @Test func `filtered entries are gone, and the rest keep their order`() {
    var chance = SeededChance(state: 8)
    var heap = TimerQueue<Int>()
    for time in (0..<500).shuffled(using: &chance) { heap.add(time, at: after(time)) }
    heap = heap.filter { at, time in time % 3 == 0 && at == after(time) }
    #expect(heap.count == 167)
    heap.add(4, at: after(4))
    var taken: [Int] = []
    while let (_, time) = heap.take(dueAt: after(500)) { taken.append(time) }
    #expect(taken == [0, 3, 4] + stride(from: 6, to: 500, by: 3))
    heap = heap.filter { _, _ in false }
    #expect(heap.count == 0)
  }
}
