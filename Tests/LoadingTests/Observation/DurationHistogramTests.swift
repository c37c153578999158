import Testing

@testable import Loading

struct DurationHistogramTests {
  @Test func `the bounds ascend`() {
    #expect(zip(DurationHistogram.bounds, DurationHistogram.bounds.dropFirst()).allSatisfy { $0 < $1 })
  }

  @Test func `a duration counts in the first bucket whose bound it does not exceed`() {
    for (index, bound) in DurationHistogram.bounds.enumerated() {
      for (duration, bucket) in [(bound - 1, index), (bound, index), (bound + 1, index + 1)] {
        var histogram = DurationHistogram()
        histogram.add(microseconds: duration)
        #expect(histogram.counts.firstIndex(of: 1) == bucket, "\(duration) µs")
        #expect(histogram.count == 1 && histogram.sum == duration)
      }
    }
  }

  @Test func `extreme durations count in the outer buckets`() {
    var histogram = DurationHistogram()
    histogram.add(microseconds: -5)
    histogram.add(microseconds: 0)
    #expect(histogram.counts.first == 2 && histogram.sum == 0)
    histogram.add(microseconds: .max)
    #expect(histogram.counts.last == 1 && histogram.count == 3 && histogram.sum == .max)
  }
}
