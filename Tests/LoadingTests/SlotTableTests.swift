import Testing

@testable import Loading

struct SlotPoolTests {
  @Test func `a slot that was given back is used again, a serial number never`() {
    var pool = SlotPool<JobID>()
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

  @Test func `loads are in the order in which they were named, whatever their slots`() {
    var pool = SlotPool<LoadID>()
    let (first, second) = (pool.take(), pool.take())
    pool.giveBack(first)
    let third = pool.take()
    #expect([third, second].sorted() == [second, third])
    #expect(first != third && first.slot == third.slot)
  }
}

struct SlotTableTests {
  @Test func `what belongs to a name is not found by the next one in its slot`() {
    var table = SlotTable<JobID, String>()
    let (old, new) = (JobID(slot: 3, serial: 7), JobID(slot: 3, serial: 9))
    #expect(table[old] == nil)
    table[old] = "old"
    #expect(table[old] == "old" && table.contains(old))
    #expect(table[new] == nil && !table.contains(new))
    #expect(table.remove(old) == "old")
    #expect(!table.contains(old))
    table[new] = "new"
    #expect(table[old] == nil)
    #expect(table.remove(old) == nil)
    table[old] = nil
    #expect(table[new] == "new")
    #expect(table.count == 1)
    table[new] = nil
    #expect(table.isEmpty)
  }

  @Test func `a slot tells what is in it, by which name, and lets it change`() {
    var table = SlotTable<JobID, String>()
    table.insert("b", at: JobID(slot: 2, serial: 5))
    table.insert("a", at: JobID(slot: 0, serial: 6))
    table[2] += "!"
    #expect(table[2] == "b!")
    #expect(table.id(at: 2) == JobID(slot: 2, serial: 5))
    #expect(table.ids == [JobID(slot: 0, serial: 6), JobID(slot: 2, serial: 5)])
  }

  @Test(arguments: [JobID(slot: -1, serial: 0), JobID(slot: 4, serial: 1), JobID(slot: .max, serial: .max)])
  func `a name beyond all slots finds nothing`(stray: JobID) {
    var table = SlotTable<JobID, String>()
    table.insert("a", at: JobID(slot: 0, serial: 1))
    #expect(table[stray] == nil && !table.contains(stray))
    #expect(table.remove(stray) == nil)
    table[stray] = nil
    #expect(table.count == 1)
  }
}

struct MomentTests {
  @Test func `an instant survives to the nanosecond, before and after now`() {
    let now = ContinuousClock.now
    for nanoseconds in [0, 1, -1, 999_999_999, -86_400_000_000_001, 86_400_000_000_001] as [Int64] {
      let instant = now.advanced(by: .nanoseconds(nanoseconds))
      #expect(Moment(instant).instant == instant)
    }
    #expect(Moment(now) < Moment(now.advanced(by: .nanoseconds(1))))
  }

  @Test func `what is thousands of years away is never`() {
    #expect(Moment(ContinuousClock.now.advanced(by: .seconds(1 << 53))) == .never)
    #expect(Moment(ContinuousClock.now.advanced(by: .seconds(-(1 << 53)))) < Moment(.now))
  }
}
