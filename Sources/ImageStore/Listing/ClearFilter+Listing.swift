/// The properties of a filter that let a listing examine fewer entries.
extension ClearFilter {
  /// Whether the filter can match the entries of one URL or key only, which an SQL index finds at once.
  var isNarrow: Bool {
    parts.contains { part in
      switch part {
      case .url, .key: true
      default: false
      }
    }
  }

  /// A range of keys, compared by bytes, that contains all keys that the filter matches.
  struct KeyRange {
    var start: String
    /// The first key after the range; nil if it is open.
    var end: String?

    /// The position before the range; nil if it is that before all keys.
    func start(reversed: Bool) -> KeyPosition? {
      reversed ? end.map { KeyPosition(key: $0) } : KeyPosition(key: start, isIncluded: true)
    }

    /// Whether the range can have keys after this one.
    func contains(_ key: String, reversed: Bool) -> Bool {
      if reversed { return !key.utf8.lexicographicallyPrecedes(start.utf8) }
      return end.map { key.utf8.lexicographicallyPrecedes($0.utf8) } ?? true
    }
  }

  /// Nil if the filter has no range.
  var keyRange: KeyRange? {
    for case .prefix(let prefix) in parts { return KeyRange(start: prefix, end: Self.successor(of: prefix)) }
    return nil
  }
}
