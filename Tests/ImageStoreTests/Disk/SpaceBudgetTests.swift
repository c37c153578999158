import Testing

@testable import ImageStore

@Suite struct SpaceBudgetTests {
  private func isDue(_ budget: inout SpaceBudget, adding bytes: Int64, now: Int) -> Bool {
    budget.mustMeasure(adding: bytes, now: now)
  }

  private func record(_ id: Int64, usedAt: Int, allocated: Int64 = 4096) -> FileRecord {
    FileRecord(id: id, file: "\(id)", allocated: allocated, usedAt: usedAt, deliveredAt: 0)
  }

  @Test func `bytes that fit in the limit demand no eviction`() {
    let budget = SpaceBudget(limit: 1000, minFreeFraction: 0)
    #expect(budget.demand(adding: 400, used: 600) == nil)
  }

  @Test func `over the limit, the demand is the excess and may take 1 % of the limit more`() throws {
    let budget = SpaceBudget(limit: 1000, minFreeFraction: 0)
    var demand = try #require(budget.demand(adding: 401, used: 700))
    #expect(demand.bytes == 101 && demand.reason == .limit && demand.spare == 10)
    demand.freed = 100
    #expect(!demand.isMet && demand.includes(5000), "an unmet demand takes a file of any size")
    demand.freed = 101
    #expect(demand.isMet && demand.includes(10) && !demand.includes(11) && !demand.includes(0))
  }

  @Test func `with too little free space, the demand is what is missing to the minimum, and nothing to spare`() throws {
    var budget = SpaceBudget(limit: 1 << 40, minFreeFraction: 0.1)
    #expect(isDue(&budget, adding: 0, now: 0))
    budget.recordSpace(free: 60, total: 1000, used: 500, adding: 0, now: 0)
    let demand = try #require(budget.demand(adding: 5, used: 500))
    #expect(demand.bytes == 45 && demand.reason == .freeSpace && demand.spare == 0)
    #expect(budget.partialLimit == 460 / 4)
  }

  @Test func `the free space is measured after 5 s, a clock set back, or half of the spare bytes`() {
    var budget = SpaceBudget(limit: 1 << 40, minFreeFraction: 0.1)
    func measure() { budget.recordSpace(free: 300, total: 1000, used: 0, adding: 20, now: 100) }
    measure()
    #expect(!isDue(&budget, adding: 50, now: 104))
    #expect(isDue(&budget, adding: 31, now: 104), "80 bytes were allowed, and 50 are used")
    measure()
    #expect(isDue(&budget, adding: 0, now: 105))
    measure()
    #expect(isDue(&budget, adding: 0, now: 99))
    measure()
    budget.minFreeFraction = 0.2
    #expect(isDue(&budget, adding: 0, now: 100))
    budget.minFreeFraction = 0
    #expect(!isDue(&budget, adding: 0, now: 100), "without a minimum, nothing is measured")
  }

  @Test func `a measurement that is due and fails limits nothing`() {
    var budget = SpaceBudget(limit: 1 << 40, minFreeFraction: 0.1)
    budget.recordSpace(free: 0, total: 1000, used: 500, adding: 0, now: 0)
    #expect(budget.demand(adding: 0, used: 500) != nil)
    #expect(isDue(&budget, adding: 0, now: 5))
    #expect(budget.demand(adding: 0, used: 500) == nil)
  }

  @Test func `a file may have a tenth of the limit, but at least a block`() {
    #expect(SpaceBudget(limit: 100_000, minFreeFraction: 0).maxFileBytes(blockSize: 4096) == 10_000)
    #expect(SpaceBudget(limit: 10_000, minFreeFraction: 0).maxFileBytes(blockSize: 4096) == 4096)
    #expect(SpaceBudget(limit: 3000, minFreeFraction: 0).maxFileBytes(blockSize: 4096) == 3000)
  }

  @Test func `a scan continues after the rows that it skipped until one of them may be evicted`() {
    var budget = SpaceBudget(limit: 1000, minFreeFraction: 0)
    budget.startScan(now: 100)
    budget.skip(record(1, usedAt: 50), until: 130)
    budget.skip(record(2, usedAt: 60), until: 120)
    budget.startScan(now: 119)
    #expect(budget.cursor.upTo == (60, 2) && budget.cursor.until == 120)
    budget.startScan(now: 120)
    #expect(budget.cursor.upTo == (.min, .min) && budget.cursor.until == .max)
    budget.skip(record(1, usedAt: 50), until: 190)
    budget.startScan(now: 110)
    #expect(budget.cursor.upTo == (.min, .min), "the clock was set back")
  }

  @Test func `reservations are added up and end`() {
    var budget = SpaceBudget(limit: 1000, minFreeFraction: 0)
    budget[reservation: 1] = 100
    budget[reservation: 2] = 50
    budget[reservation: 1] = 200
    #expect(budget.reservedBytes == 250 && budget[reservation: 3] == nil)
    budget[reservation: 1] = nil
    budget[reservation: 2] = nil
    #expect(!budget.hasReservations)
  }
}
