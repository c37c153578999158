import Testing

@testable import ImageCodec

struct DecodeQueueTests {
  private var queue = DecodeQueue(budget: 100)

  private func ticket(_ number: UInt64) -> DecodeTicket { DecodeTicket(number: number) }

  private mutating func expectNext(_ expected: DecodeTicket?, _ location: SourceLocation = #_sourceLocation) {
    let next = queue.dequeue()
    #expect(next == expected, sourceLocation: location)
  }

  private mutating func takeAll() -> [UInt64] {
    var order: [UInt64] = []
    while let next = queue.dequeue() {
      order.append(next.number)
      queue.finish(next)
    }
    return order
  }

  @Test mutating func `the most urgent goes first, then the first that came`() {
    for (number, priority) in [(1, 0), (2, 5), (3, 0), (4, 5), (5, 9)] {
      queue.add(ticket(UInt64(number)), priority: priority, pixels: 1)
    }
    let order = takeAll()
    #expect(order == [5, 2, 4, 1, 3])
  }

  @Test mutating func `a changed priority applies at once`() {
    for number in 1...4 { queue.add(ticket(UInt64(number)), priority: 0, pixels: 1) }
    queue.reprioritize(ticket(3), to: 7)
    queue.reprioritize(ticket(1), to: -1)
    queue.reprioritize(ticket(9), to: 8)
    let order = takeAll()
    #expect(order == [3, 2, 4, 1])
  }

  @Test mutating func `a removed ticket is never returned`() {
    for number in 1...300 { queue.add(ticket(UInt64(number)), priority: number % 3, pixels: 1) }
    for number in 1...297 { _ = queue.remove(ticket(UInt64(number))) }
    let isThere = queue.remove(ticket(1))
    #expect(!isThere)
    #expect(queue.waitingCount == 3)
    let order = takeAll()
    #expect(order == [299, 298, 300])
  }

  @Test mutating func `a ticket whose priority changes often does not grow the queue`() {
    queue.add(ticket(1), priority: 0, pixels: 1)
    for priority in 1...10_000 { queue.reprioritize(ticket(1), to: priority % 5) }
    #expect(queue.placeCount < 100)
    let order = takeAll()
    #expect(order == [1])
  }

  @Test mutating func `the running pixels stay within the budget`() {
    for (number, pixels) in [(1, 60), (2, 40), (3, 2)] {
      queue.add(ticket(UInt64(number)), priority: 0, pixels: pixels)
    }
    expectNext(ticket(1))
    expectNext(ticket(2))
    expectNext(nil)
    queue.finish(ticket(1))
    expectNext(ticket(3))
  }

  @Test mutating func `a small excess over the budget is allowed`() {
    queue.add(ticket(1), priority: 0, pixels: .max)
    queue.add(ticket(2), priority: 0, pixels: 1)
    queue.add(ticket(3), priority: 0, pixels: 2)
    expectNext(ticket(1))
    expectNext(ticket(2))
    expectNext(nil)
  }

  @Test mutating func `a decode larger than the budget runs alone, and nothing overtakes it`() {
    queue.add(ticket(1), priority: 0, pixels: 10)
    queue.add(ticket(2), priority: 0, pixels: .max)
    queue.add(ticket(3), priority: 0, pixels: 10)
    expectNext(ticket(1))
    expectNext(nil)
    queue.finish(ticket(1))
    expectNext(ticket(2))
    expectNext(nil)
    queue.finish(ticket(2))
    expectNext(ticket(3))
  }

  @Test mutating func `a thousand random steps agree with a sorted list`() {
    struct Entry { var number: UInt64, priority: Int }
    var model: [Entry] = []
    var random = SystemRandomNumberGenerator()
    queue = DecodeQueue(budget: .max)
    for number in 1...1000 as ClosedRange<UInt64> {
      let priority = Int.random(in: 0..<5, using: &random)
      queue.add(ticket(number), priority: priority, pixels: 1)
      model.append(Entry(number: number, priority: priority))
      if let index = model.indices.randomElement(using: &random) {
        switch Int.random(in: 0..<3, using: &random) {
        case 0:
          model[index].priority = Int.random(in: 0..<5, using: &random)
          queue.reprioritize(ticket(model[index].number), to: model[index].priority)
        case 1:
          let isRemoved = queue.remove(ticket(model.remove(at: index).number))
          #expect(isRemoved)
        default:
          let next = model.indices.min {
            (-model[$0].priority, model[$0].number) < (-model[$1].priority, model[$1].number)
          }
          let expected = next.map { model.remove(at: $0).number }
          let taken = queue.dequeue()
          #expect(taken?.number == expected)
          if let taken { queue.finish(taken) }
        }
      }
    }
    model.sort { (-$0.priority, $0.number) < (-$1.priority, $1.number) }
    let order = takeAll()
    #expect(order == model.map(\.number))
  }
}
