/// The spans that arrows may start from, by key. A key takes the place of another one that is a multiple of `capacity`
/// apart: keys that count up are forgotten when they are old.
struct TraceLinks {
  struct End {
    var row: TraceRow
    var start: Int64
  }

  static let capacity: UInt64 = 4096
  private var ends: [(key: UInt64, end: End)?] = Array(repeating: nil, count: Int(capacity))

  /// Returns the span that was linked first with this key; nil if this is the first, which is then kept.
  mutating func link(_ key: UInt64, _ end: End) -> End? {
    let slot = Int(key % Self.capacity)
    if let other = ends[slot], other.key == key { return other.end }
    ends[slot] = (key, end)
    return nil
  }
}
