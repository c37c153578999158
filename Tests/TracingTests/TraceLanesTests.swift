import Testing

@testable import Tracing

@Suite("The lanes of spans that overlap")
struct TraceLanesTests {
  @Test("the spans of a lane do not overlap, and there are no more lanes than spans at a time")
  func fewest() {
    var random = SystemRandomNumberGenerator()
    for _ in 0..<200 {
      let spans = (0..<Int.random(in: 1...80, using: &random)).map { _ in
        let start = Int64.random(in: 0...200, using: &random)
        return (start: start, end: start + Int64.random(in: 1...60, using: &random))
      }.sorted { $0.end < $1.end }
      var lanes = TraceLanes()
      var ends: [Int: Int64] = [:]
      for span in spans {
        guard let lane = lanes.take(from: span.start, to: span.end) else {
          Issue.record("no lane")
          continue
        }
        #expect(ends[lane, default: 0] <= span.start)
        ends[lane] = span.end
      }
      let most = (0...260).map { time in spans.count { $0.start <= time && time < $0.end } }.max()
      #expect(lanes.count == most)
    }
  }

  @Test("spans beyond the last lane get none until one is free")
  func full() {
    var lanes = TraceLanes()
    for lane in 0..<TraceLanes.maxLanes { #expect(lanes.take(from: 0, to: Int64(10 + lane)) == lane) }
    #expect(lanes.take(from: 9, to: 500) == nil)
    #expect(lanes.take(from: 12, to: 501) == 2)
  }
}
