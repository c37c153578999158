/// The spans that arrows may start from, by key. The oldest is forgotten when there are too many.
struct TraceLinks {
  struct End: Equatable {
    var track: TraceTrack
    var start: Int64
  }

  static let capacity = 4096
  private var ends: [UInt64: End] = [:]
  private var keys: [UInt64] = []
  private var oldest = 0

  /// Returns the span that was linked first with this key; nil if this is the first, which is then kept.
  mutating func link(_ key: UInt64, _ end: End) -> End? {
    if let other = ends[key] { return other }
    ends[key] = end
    if keys.count < Self.capacity {
      keys.append(key)
    } else {
      ends[keys[oldest]] = nil
      keys[oldest] = key
      oldest = (oldest + 1) % Self.capacity
    }
    return nil
  }
}
