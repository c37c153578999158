/// Assigns spans to lanes, so that the spans of one lane do not overlap. Spans come in the order of their ends.
///
/// Each span gets the free lane that was used last. With spans in this order, this needs no more lanes than spans
/// overlap (Faigle and Nawijn 1995, "Note on scheduling intervals on-line").
struct TraceLanes {
  static let maxLanes = 128
  /// The end of the last span of each lane.
  private var ends: [Int64] = []

  var count: Int { ends.count }

  /// Returns a lane that is free from `start` on; nil if all `maxLanes` are in use.
  mutating func take(from start: Int64, to end: Int64) -> Int? {
    var best: Int?
    for (lane, last) in ends.enumerated() where last <= start && last > best.map({ ends[$0] }) ?? .min { best = lane }
    if best == nil, ends.count < Self.maxLanes {
      best = ends.count
      ends.append(.min)
    }
    if let best { ends[best] = max(end, ends[best]) }
    return best
  }
}
