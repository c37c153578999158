import Testing

@testable import LineRPC

struct OutputQueueTests {
  private var queue = OutputQueue()
  private let first = RequestToken(id: .integer(1), serial: 1, batch: nil)
  private let second = RequestToken(id: .integer(2), serial: 2, batch: nil)

  private func line(_ text: String) -> [UInt8] { Array((text + "\n").utf8) }

  private mutating func dequeueAll() -> String {
    var all: [UInt8] = []
    while !queue.isEmpty { all += queue.dequeue() }
    #expect(queue.dequeue().isEmpty)
    return String(decoding: all, as: UTF8.self).split(separator: "\n").joined(separator: " ")
  }

  @Test mutating func `lines are dequeued in their order, as one piece`() {
    queue.append(line("a"), about: first)
    queue.append(line("b"), about: nil)
    queue.appendReplaceable(line("c"), about: second)
    queue.append(line("d"), about: first)
    #expect(queue.count == 8)
    #expect(queue.dequeue() == line("a") + line("b") + line("c") + line("d"))
    #expect(queue.isEmpty)
  }

  @Test mutating func `newer progress replaces older progress in its position`() {
    queue.appendReplaceable(line("10"), about: first)
    queue.append(line("x"), about: second)
    queue.appendReplaceable(line("1000"), about: first)
    queue.appendReplaceable(line("20"), about: second)
    #expect(queue.count == 5 + 2 + 3)
    #expect(dequeueAll() == "1000 x 20")
  }

  @Test mutating func `progress stays behind another line about the same request`() {
    queue.appendReplaceable(line("50"), about: first)
    queue.append(line("retrying"), about: first)
    queue.appendReplaceable(line("10"), about: first)
    queue.appendReplaceable(line("20"), about: first)
    #expect(dequeueAll() == "50 retrying 20")
  }

  @Test mutating func `progress that was dequeued is not replaced`() {
    queue.appendReplaceable(line("10"), about: first)
    #expect(dequeueAll() == "10")
    queue.append(line("x"), about: second)
    queue.appendReplaceable(line("20"), about: first)
    queue.appendReplaceable(line("30"), about: first)
    #expect(dequeueAll() == "x 30")
  }

  @Test mutating func `dequeued pieces are whole lines of at most 64 kB, or one longer line`() {
    let long = [UInt8](repeating: 0x61, count: 200_000) + [0x0A]
    queue.append(line("a"), about: nil)
    queue.append(long, about: nil)
    queue.append(line("b"), about: nil)
    #expect(queue.dequeue() == line("a"))
    #expect(queue.dequeue() == long)
    #expect(queue.dequeue() == line("b"))
    #expect(queue.dequeue().isEmpty)
    let medium = [UInt8](repeating: 0x61, count: 9999) + [0x0A]
    for _ in 0..<20 { queue.append(medium, about: nil) }
    var counts: [Int] = []
    while !queue.isEmpty { counts.append(queue.dequeue().count) }
    #expect(counts == [60_000, 60_000, 60_000, 20_000])
  }

  @Test mutating func `the queue is empty after removeAll`() {
    queue.append(line("a"), about: first)
    queue.appendReplaceable(line("b"), about: first)
    queue.removeAll()
    #expect(queue.isEmpty)
    queue.appendReplaceable(line("c"), about: first)
    #expect(dequeueAll() == "c")
  }

  @Test mutating func `a naive queue gives the same lines for all operations`() {
    let seed = UInt64.random(in: .min ... .max)
    var generator = SeededGenerator(seed: seed)
    var model: [(text: String, subject: Int, isReplaceable: Bool)] = []
    var (taken, expected) = ("", "")
    var countPutBack = 0
    for number in 0..<20_000 {
      let subject = Int.random(in: 0..<5, using: &generator)
      let token = RequestToken(id: nil, serial: UInt64(subject), batch: nil)
      // Long enough that a queue of some hundred lines is dequeued in several pieces.
      let text = "\(number)" + String(repeating: ".", count: Int.random(in: 0...3000, using: &generator)) + "\n"
      switch Int.random(in: 0..<100, using: &generator) {
      case 0:
        let piece = String(decoding: queue.dequeue(), as: UTF8.self)
        var length = countPutBack
        while length < piece.utf8.count, !model.isEmpty {
          let line = model.removeFirst().text
          length += line.utf8.count
          expected += line
        }
        let written = Int.random(in: 0...piece.utf8.count, using: &generator)
        countPutBack = piece.utf8.count - written
        if countPutBack > 0 { queue.prepend(Array(piece.utf8.dropFirst(written))) }
        taken += piece.prefix(written)
      case 1..<50:
        queue.append(Array(text.utf8), about: token)
        model.append((text, subject, false))
      default:
        queue.appendReplaceable(Array(text.utf8), about: token)
        if let last = model.lastIndex(where: { $0.subject == subject }), model[last].isReplaceable {
          model[last].text = text
        } else {
          model.append((text, subject, true))
        }
      }
    }
    while !queue.isEmpty { taken += String(decoding: queue.dequeue(), as: UTF8.self) }
    expected += model.map(\.text).joined()
    #expect(taken == expected, "seed \(seed)")
  }
}
