import Testing

@testable import ImageCodec

/// The search beside one that tries every quality.
struct QualitySearchTests {
  @Test func `five tries find a quality that fits if there is one, and nearly the highest`() {
    for (from, downTo) in [(80, 40), (100, 1), (60, 60), (50, 49), (30, 90), (2, 1)] {
      let low = min(from, downTo)
      for highest in (low - 1)...from {
        // The size is the quality itself: those up to `highest` fit.
        var search = QualitySearch(maxBytes: highest, from: from, downTo: downTo)
        var (tries, best) = (0, Int?.none)
        while let quality = search.next {
          #expect((low...from).contains(quality))
          tries += 1
          if search.add(byteCount: quality) { best = quality }
        }
        #expect(tries <= 5)
        guard highest >= low else {
          #expect(best == nil)
          continue
        }
        guard let best else {
          Issue.record("\(highest) of \(low)...\(from) fits")
          continue
        }
        // Four halvings of the range after the first try; the last may have to be the lowest.
        #expect(best <= highest && highest - best <= (from - low) / 8 + 1)
      }
    }
  }
}
