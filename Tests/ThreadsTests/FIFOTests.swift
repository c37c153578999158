import Testing
import Threads

struct FIFOTests {
  private final class Thing {}

  @Test func `the first element in is the first out, for all operations between`() {
    var (queue, model, given) = (FIFO<Int>(), [Int](), 0)
    for number in 0..<10_000 {
      // Practically random (Knuth's multiplicative hash).
      if ((number &* 2_654_435_761) >> 16) % 5 < 3 {
        queue.append(number)
        model.append(number)
      } else if !model.isEmpty {
        #expect(queue.first == model.first)
        #expect(queue.popFirst() == model.removeFirst())
        given += 1
      } else {
        #expect(queue.first == nil && queue.popFirst() == nil)
      }
      if number % 1000 == 999 {
        queue.removeAll { $0 % 3 == 0 }
        model.removeAll { $0 % 3 == 0 }
      }
      #expect(queue.count == model.count && queue.isEmpty == model.isEmpty)
    }
    #expect(given > 1000)
  }

  @Test func `removed elements are released`() {
    var queue = FIFO<Thing>()
    weak var first: Thing?
    do {
      let thing = Thing()
      first = thing
      queue.append(thing)
      queue.append(Thing())
    }
    #expect(first != nil)
    queue.popFirst()
    #expect(first == nil)
    #expect(queue.count == 1)
  }
}
