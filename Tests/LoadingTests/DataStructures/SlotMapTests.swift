import Testing

@testable import Loading

struct GenerationalIDPoolTests {
  @Test func `a freed slot is reused, a serial number never`() {
    var pool = GenerationalIDPool<JobID>()
    let names = (0..<3).map { _ in pool.take() }
    #expect(names.map(\.slot) == [0, 1, 2])
    #expect(pool.count == 3)
    pool.giveBack(names[1])
    #expect(pool.count == 2)
    let next = pool.take()
    #expect(next.slot == 1)
    #expect(next.serial > names.map(\.serial).max()!)
    #expect(pool.take().slot == 3)
    for name in [names[0], next, names[2]] { pool.giveBack(name) }
    #expect(pool.count == 1)
  }

  @Test func `load IDs are ordered by their creation, whatever their slots`() {
    var pool = GenerationalIDPool<LoadID>()
    let (first, second) = (pool.take(), pool.take())
    pool.giveBack(first)
    let third = pool.take()
    #expect([third, second].sorted() == [second, third])
    #expect(first != third && first.slot == third.slot)
  }
}

struct SlotMapTests {
  // A `SlotMap` cannot be copied and therefore not be used in `#expect`: its results are read first.

  @Test func `the value of an ID is not found by the next ID in its slot`() {
    var table = SlotMap<JobID, String>()
    let (old, new) = (JobID(slot: 3, serial: 7), JobID(slot: 3, serial: 9))
    let before = table[old]
    #expect(before == nil)
    table[old] = "old"
    let (there, isThere, other, isOther) = (table[old], table.contains(old), table[new], table.contains(new))
    #expect(there == "old" && isThere)
    #expect(other == nil && !isOther)
    let removed = table.remove(old)
    let isStillThere = table.contains(old)
    #expect(removed == "old" && !isStillThere)
    table[new] = "new"
    let late = table[old]
    let removedLate = table.remove(old)
    #expect(late == nil && removedLate == nil)
    table[old] = nil
    let (kept, count) = (table[new], table.count)
    #expect(kept == "new" && count == 1)
    table[new] = nil
    let isEmpty = table.isEmpty
    #expect(isEmpty)
  }

  @Test func `a slot gives access to its value and its ID`() {
    var table = SlotMap<JobID, String>()
    table.insert("b", at: JobID(slot: 2, serial: 5))
    table.insert("a", at: JobID(slot: 0, serial: 6))
    table[2] += "!"
    let (value, name, names) = (table[2], table.id(at: 2), table.ids)
    #expect(value == "b!")
    #expect(name == JobID(slot: 2, serial: 5))
    #expect(names == [JobID(slot: 0, serial: 6), JobID(slot: 2, serial: 5)])
  }

  @Test func `values survive growth and are released with the map`() {
    final class Token {}
    weak var last: Token?
    do {
      var table = SlotMap<JobID, Token>()
      for slot in 0..<1000 as Range<Int32> where slot % 3 > 0 {
        let token = Token()
        table.insert(token, at: JobID(slot: slot, serial: UInt64(slot) + 1))
        last = token
      }
      let (names, tokens) = (
        table.ids,
        Set((0..<1000).compactMap { table[JobID(slot: $0, serial: UInt64($0) + 1)] }.map(ObjectIdentifier.init))
      )
      #expect(names.count == 666 && tokens.count == 666)
      #expect(last != nil)
    }
    #expect(last == nil)
  }

  @Test(arguments: [
    JobID(slot: -1, serial: 0), JobID(slot: 4, serial: 1), JobID(slot: .max, serial: .max), JobID(slot: 1, serial: 0),
  ])
  func `an ID beyond all slots, or never allocated, finds nothing`(stray: JobID) {
    var table = SlotMap<JobID, String>()
    table.insert("a", at: JobID(slot: 0, serial: 1))
    table.insert("b", at: JobID(slot: 1, serial: 2))
    table[JobID(slot: 1, serial: 2)] = nil
    let (found, isThere) = (table[stray], table.contains(stray))
    #expect(found == nil && !isThere)
    let removed = table.remove(stray)
    #expect(removed == nil)
    table[stray] = nil
    let count = table.count
    #expect(count == 1)
  }
}
