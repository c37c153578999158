import Testing

@testable import Loading

struct ChainTests {
  /// A chain and its links, read back in both directions.
  private struct Row {
    var chain = Chain()
    var links = [Chain.Link](repeating: Chain.Link(), count: 16)

    mutating func append(_ slot: Int) { chain.append(slot, in: &links) }
    mutating func prepend(_ slot: Int) { chain.prepend(slot, in: &links) }
    mutating func remove(_ slot: Int) { chain.remove(slot, in: &links) }

    var forwards: [Int] { Array(sequence(first: chain.first) { links[$0].next }.prefix { $0 != Chain.none }) }
    var backwards: [Int] { Array(sequence(first: chain.last) { links[$0].previous }.prefix { $0 != Chain.none }) }
  }

  @Test func `an empty chain has no ends`() {
    let chain = Chain()
    #expect(chain.isEmpty)
    #expect(chain.first == Chain.none)
    #expect(chain.last == Chain.none)
  }

  @Test func `elements leave from the front, the back and the middle`() {
    var row = Row()
    for slot in 0..<5 { row.append(slot) }
    row.prepend(9)
    #expect(row.forwards == [9, 0, 1, 2, 3, 4])
    for (slot, left) in [(9, [0, 1, 2, 3, 4]), (4, [0, 1, 2, 3]), (1, [0, 2, 3])] {
      row.remove(slot)
      #expect(row.forwards == left)
      #expect(row.backwards == left.reversed())
      #expect(row.chain.count == left.count)
    }
    for slot in [0, 2, 3] { row.remove(slot) }
    #expect(row.chain.isEmpty && row.chain.first == Chain.none && row.chain.last == Chain.none)
  }

  @Test func `it holds what an array would, whatever is done`() {
    var chance = SeededChance(state: 5)
    var row = Row()
    var array: [Int] = []
    for _ in 0..<5000 {
      let slot = Int.random(in: 0..<16, using: &chance)
      if let index = array.firstIndex(of: slot) {
        row.remove(slot)
        array.remove(at: index)
      } else if Bool.random(using: &chance) {
        row.append(slot)
        array.append(slot)
      } else {
        row.prepend(slot)
        array.insert(slot, at: 0)
      }
      guard row.forwards == array, row.backwards == array.reversed(), row.chain.count == array.count else {
        Issue.record("\(row.forwards) and \(row.backwards) instead of \(array)")
        return
      }
    }
  }
}

struct SlotsTests {
  @Test func `a slot keeps its value until it is removed, and is used again then`() {
    var slots = Slots(vacant: "")
    #expect(slots.isEmpty)
    #expect(slots.nextSlot == 0)
    let first = slots.insert("a")
    let second = slots.insert("b")
    #expect(slots[first] == "a" && slots[second] == "b")
    slots[first] += "!"
    #expect(slots[first] == "a!")
    slots.remove(first)
    #expect(slots.nextSlot == first)
    #expect(slots.occupied == [second])
    #expect(slots.insert("c") == first)
    #expect(slots.nextSlot == 2)
    #expect(slots.occupied == [0, 1])
    slots.remove(0)
    slots.remove(1)
    #expect(slots.isEmpty)
  }
}

struct JobTableTests {
  @Test func `what belongs to a job is not found for the next one in its slot`() {
    var table = JobTable<String>()
    let (old, new) = (JobID(slot: 3, serial: 7), JobID(slot: 3, serial: 9))
    #expect(table[old] == nil)
    table[old] = "old"
    #expect(table[old] == "old")
    #expect(table[new] == nil)
    #expect(table.remove(old) == "old")
    table[new] = "new"
    #expect(table[old] == nil)
    #expect(table.remove(old) == nil)
    table[old] = nil
    #expect(table[new] == "new")
    #expect(!table.isEmpty)
    table[new] = nil
    #expect(table.isEmpty)
  }
}
