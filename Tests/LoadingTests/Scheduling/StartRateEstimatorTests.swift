import Platform
import Testing

@testable import Loading

struct StartRateEstimatorTests {
  private var pace = StartRateEstimator()
  private let begin = Instant.now

  private func at(_ milliseconds: Int) -> Instant { begin.advanced(by: .milliseconds(milliseconds)) }

  @Test func `without any start the longest time is suggested`() {
    #expect(pace.time(for: 1, at: begin) == .seconds(30))
  }

  @Test mutating func `a steady rate is estimated from the beginning`() {
    for second in 0..<60 {
      for tenth in 0..<10 { pace.record(2, at: at(second * 1000 + tenth * 100)) }
      guard second > 1 else { continue }
      let time = pace.time(for: 100, at: at(second * 1000 + 999))
      #expect(time > .seconds(4) && time < .seconds(6), "20 a second: 100 take 5 s, not \(time)")
    }
  }

  @Test mutating func `old starts are forgotten`() {
    pace.record(1000, at: begin)
    #expect(pace.time(for: 100, at: at(1000)) < .seconds(1))
    #expect(pace.time(for: 100, at: at(120_000)) == .seconds(30))
  }

  @Test mutating func `the suggested time is never zero`() {
    pace.record(100_000, at: begin)
    #expect(pace.time(for: 1, at: at(10)) == .milliseconds(100))
  }
}
