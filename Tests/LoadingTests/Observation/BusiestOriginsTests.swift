import HTTPTypes
import Testing

@testable import Loading

struct BusiestOriginsTests {
  private let origins = (0..<1000).map { Origin(scheme: "https", host: "host\($0).example", port: 443) }

  /// The sum of all counters.
  private func total(_ busiest: BusiestOrigins) -> BusiestOrigins.Counts {
    busiest.shown.reduce(into: busiest.other) { $0 += $1.counts }
  }

  @Test func `up to twenty origins have exact counters`() {
    var busiest = BusiestOrigins()
    for (number, origin) in origins.prefix(20).enumerated() {
      for transfer in 0...number {
        busiest.count(origin, hasSucceeded: transfer > 0, bytes: 10)
      }
    }
    #expect(busiest.other == BusiestOrigins.Counts())
    #expect(busiest.shown.count == 20)
    for (origin, counts) in busiest.shown {
      let number = origins.firstIndex(of: origin)!
      #expect(counts == BusiestOrigins.Counts(succeeded: number, failed: 1, bytes: Int64(10 * (number + 1))))
    }
  }

  @Test func `the busiest origins are found among many, and the sum is exact`() {
    var busiest = BusiestOrigins()
    // All others first, then the ten busiest ones between them.
    for origin in origins.dropFirst(10) { busiest.count(origin, hasSucceeded: true, bytes: 1) }
    for round in 0..<100 {
      for origin in origins.prefix(10) { busiest.count(origin, hasSucceeded: true, bytes: 1) }
      busiest.count(origins[10 + round % 990], hasSucceeded: false, bytes: 1)
    }
    let shown = Set(busiest.shown.map(\.origin))
    #expect(shown.isSuperset(of: origins.prefix(10)))
    #expect(shown.count == BusiestOrigins.maxShown)
    #expect(total(busiest) == BusiestOrigins.Counts(succeeded: 990 + 1000, failed: 100, bytes: 990 + 1000 + 100))
  }

  @Test func `no counter falls while an origin is shown, and that of the others never`() {
    var busiest = BusiestOrigins()
    var generator = SystemRandomNumberGenerator()
    var before: [Origin: Int] = [:]
    var other = 0
    for number in 1...20_000 {
      // Few origins have most of the transfers, and these change.
      let index = Int(generator.next(upperBound: UInt32(10) << (generator.next(upperBound: UInt32(7)))))
      busiest.count(origins[(index + number / 1000) % 1000], hasSucceeded: true, bytes: 0)
      let now = Dictionary(uniqueKeysWithValues: busiest.shown.map { ($0.origin, $0.counts.succeeded) })
      for (origin, count) in now { #expect(before[origin, default: 0] <= count) }
      #expect(other <= busiest.other.succeeded)
      (before, other) = (now, busiest.other.succeeded)
      #expect(total(busiest).succeeded == number)
    }
  }

  @Test func `origins with equally few transfers do not take turns`() {
    var busiest = BusiestOrigins()
    var names: Set<Origin> = []
    for _ in 0..<50 {
      for origin in origins {
        busiest.count(origin, hasSucceeded: true, bytes: 0)
        names.formUnion(busiest.shown.map(\.origin))
      }
    }
    #expect(names.count == BusiestOrigins.maxShown)
  }

  @Test func `an origin with a very long name counts among the others`() {
    var busiest = BusiestOrigins()
    let long = Origin(scheme: "https", host: String(repeating: "a", count: 101), port: 443)
    busiest.count(long, hasSucceeded: true, bytes: 5)
    #expect(busiest.shown.isEmpty)
    #expect(busiest.other == BusiestOrigins.Counts(succeeded: 1, failed: 0, bytes: 5))
  }
}
