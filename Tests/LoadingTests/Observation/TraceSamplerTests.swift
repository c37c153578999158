import Platform
import Testing

@testable import Loading

@Suite("The counters of a trace")
struct TraceSamplerTests {
  private let start = Instant.now
  private func time(_ milliseconds: Int) -> Instant { start.advanced(by: .milliseconds(milliseconds)) }

  @Test("a sample is due after an interval, and its rates are those of the time since the last")
  func rates() {
    var sampler = TraceSampler()
    #expect(sampler.isDue(at: time(0)))
    #expect(sampler.take(.init(received: 1000, evicted: 5), at: time(0))?.evicted == 0)
    #expect(!sampler.isDue(at: time(99)))
    #expect(sampler.isDue(at: time(100)))
    let sample = sampler.take(.init(received: 2000, memoryHits: 40, evicted: 7), at: time(200))
    #expect(sample?.bytesPerSecond == 5000)
    #expect(sample?.memoryHitsPerSecond == 200)
    #expect(sample?.evicted == 2)
  }

  @Test("after the last change there is one more sample, in which the rates are zero")
  func standstill() {
    var sampler = TraceSampler()
    let figures = TraceSampler.Figures(waiting: 3, received: 500)
    #expect(sampler.take(figures, at: time(0)) != nil)
    #expect(sampler.next == time(100))
    #expect(sampler.take(figures, at: time(100))?.bytesPerSecond == 0)
    #expect(sampler.next == nil)
    #expect(sampler.take(figures, at: time(5000)) == nil)
  }

  @Test("the first change after a pause counts as that of one interval")
  func pause() {
    var sampler = TraceSampler()
    #expect(sampler.take(.init(), at: time(0)) != nil)
    #expect(sampler.take(.init(), at: time(100)) != nil)
    #expect(sampler.take(.init(received: 1000), at: time(60_000))?.bytesPerSecond == 10_000)
  }

  @Test("a sample before it is due counts as that of one interval")
  func early() {
    var sampler = TraceSampler()
    #expect(sampler.take(.init(), at: time(0)) != nil)
    #expect(sampler.take(.init(received: 1000), at: time(1))?.bytesPerSecond == 10_000)
  }
}
