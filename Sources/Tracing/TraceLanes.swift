/// Assigns spans to lanes, so that the spans of one lane do not overlap. Spans come in the order of their ends.
///
/// Each span gets the free lane that was used last. With spans in this order, this needs no more lanes than spans
/// overlap.
struct TraceLanes {
  static let maxLanes = 128
  /// The lanes with the ends of their last spans, the latest first.
  private var lanes: [(end: Int64, lane: Int)] = []

  var count: Int { lanes.count }

  /// Returns a lane that is free from `start` on; nil if all `maxLanes` are in use.
  mutating func take(from start: Int64, to end: Int64) -> Int? {
    // The first that is free.
    var (low, high) = (0, lanes.count)
    while low < high {
      let middle = (low + high) / 2
      if lanes[middle].end <= start { high = middle } else { low = middle + 1 }
    }
    let lane: Int
    if low < lanes.count {
      lane = lanes.remove(at: low).lane
    } else if lanes.count < Self.maxLanes {
      lane = lanes.count
    } else {
      return nil
    }
    // At the front, unless the span does not come in its turn.
    lanes.insert((end, lane), at: lanes.firstIndex { $0.end <= end } ?? lanes.count)
    return lane
  }
}
