internal import Synchronization
internal import Text

/// The recent clears by all workers: a ring of entries with the number of the clear, the worker and the filter.
extension PeerTable {
  public struct Clearing: Sendable, Equatable {
    public var filter: ClearFilter
    /// Whether the clear also applies to the memory tiers.
    public var reachesMemory: Bool

    public init(_ filter: ClearFilter, reachesMemory: Bool) {
      self.filter = filter
      self.reachesMemory = reachesMemory
    }
  }

  /// The number of clears by all workers.
  public var clearCount: UInt64 { words[Layout.clears].load(ordering: .sequentiallyConsistent) }

  /// Publishes a clear to the peers.
  func publish(_ clearing: Clearing) {
    let number = words[Layout.clears].wrappingAdd(1, ordering: .sequentiallyConsistent).newValue
    // A peer that reads a later entry before this one is written treats this one as a clear of everything.
    var bytes = ClearingText(clearing).bytes
    if bytes.count > Layout.maxClearingBytes { bytes = ClearingText(Clearing(.all, reachesMemory: true)).bytes }
    let first = Layout.clearing(number)
    words[first].store(0, ordering: .sequentiallyConsistent)
    words[first + 1].store((row ?? 0) << 32 | UInt64(bytes.count), ordering: .sequentiallyConsistent)
    words[first + 2].store(FNV1a.hash(bytes), ordering: .sequentiallyConsistent)
    for (index, start) in zip((first + 3)..., stride(from: 0, to: bytes.count, by: 8)) {
      let word = bytes[start..<min(start + 8, bytes.count)].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      words[index].store(word, ordering: .sequentiallyConsistent)
    }
    words[first].store(number, ordering: .sequentiallyConsistent)
    // If this took so long that a later clear may have used the same entry, publish a clear of everything.
    if clearCount >= number &+ UInt64(Layout.clearings) { publish(Clearing(.all, reachesMemory: true)) }
  }

  /// The clears by peers since `clearCount` was `number`, or a clear of everything if the entries were overwritten.
  public func clearings(since number: UInt64) -> [Clearing] {
    var number = number
    return drainClearings(since: &number)
  }

  /// The same as `clearings(since:)`, for repeated calls. Leaves an entry that is still being written for the next
  /// call: its clear has not been answered yet.
  public func drainClearings(since number: inout UInt64) -> [Clearing] {
    var last = clearCount
    while last > number, last - number <= UInt64(Layout.clearings),
      words[Layout.clearing(last)].load(ordering: .sequentiallyConsistent) < last
    {
      last -= 1
    }
    let first = number
    guard last != first else { return [] }
    number = last
    // All of them are clears by this worker.
    if hasAlwaysBeenAlone { return [] }
    guard last > first, last - first <= UInt64(Layout.clearings) else { return [Clearing(.all, reachesMemory: true)] }
    return (first + 1...last).compactMap { clearing($0) }
  }

  /// The clear with this number; nil if this worker made it.
  private func clearing(_ number: UInt64) -> Clearing? {
    let unknown = Clearing(.all, reachesMemory: true)
    let first = Layout.clearing(number)
    let isWhole = words[first].load(ordering: .sequentiallyConsistent) == number
    let head = words[first + 1].load(ordering: .sequentiallyConsistent)
    let hash = words[first + 2].load(ordering: .sequentiallyConsistent)
    let count = Int(head & 0xffff_ffff)
    guard isWhole, count <= Layout.maxClearingBytes else { return unknown }
    var bytes: [UInt8] = []
    for index in (first + 3)..<(first + 3 + (count + 7) / 8) {
      let word = words[index].load(ordering: .sequentiallyConsistent)
      for byte in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: word >> (8 * UInt64(byte)))) }
    }
    bytes.removeLast(bytes.count - count)
    let isUnchanged = words[first].load(ordering: .sequentiallyConsistent) == number
    guard isUnchanged, FNV1a.hash(bytes) == hash else { return unknown }
    if let row, head >> 32 == row { return nil }
    return ClearingText(bytes: bytes).clearing ?? unknown
  }
}

/// The serialised form of a clear: the kind of its filter, whether it applies to memory, and the fields of the filter,
/// each preceded by its length. The fields of a conjunction are its filters: a kind and fields each.
private struct ClearingText {
  var bytes: [UInt8]

  init(bytes: [UInt8]) { self.bytes = bytes }

  init(_ clearing: PeerTable.Clearing) {
    let (kind, fields) = Self.text(of: clearing.filter)
    bytes = [kind, clearing.reachesMemory ? 1 : 0] + fields
  }

  private static func text(of filter: ClearFilter) -> (kind: UInt8, fields: [UInt8]) {
    let (kind, fields): (Character, [[UInt8]]) =
      switch filter {
      case .all: ("a", [])
      case .url(let url, let key): ("u", [Array(url.utf8), Array(key.utf8)])
      case .key(let key): ("k", [Array(key.utf8)])
      case .prefix(let prefix): ("p", [Array(prefix.utf8)])
      case .host(let name, let port): ("h", [Array(name.utf8), port.map { Array(String($0).utf8) } ?? []])
      case .olderThan(let seconds): ("o", [Array(String(seconds).utf8)])
      case .expired: ("e", [])
      case .every(let filters):
        (
          "&",
          filters.map { filter in
            let (kind, fields) = text(of: filter)
            return [kind] + fields
          }
        )
      }
    let lengthPrefixed = fields.flatMap { [UInt8($0.count >> 8 & 0xff), UInt8($0.count & 0xff)] + $0 }
    return (kind.asciiValue ?? 0, lengthPrefixed)
  }

  var clearing: PeerTable.Clearing? {
    guard bytes.count >= 2 else { return nil }
    return Self.filter(bytes[0], bytes[2...]).map { PeerTable.Clearing($0, reachesMemory: bytes[1] == 1) }
  }

  private static func filter(_ kind: UInt8, _ text: ArraySlice<UInt8>) -> ClearFilter? {
    var fields: [ArraySlice<UInt8>] = []
    var rest = text
    while rest.count >= 2 {
      let count = Int(rest.removeFirst()) << 8 | Int(rest.removeFirst())
      guard rest.count >= count else { return nil }
      fields.append(rest.prefix(count))
      rest = rest.dropFirst(count)
    }
    let texts = fields.map { String(decoding: $0, as: UTF8.self) }
    switch (Character(Unicode.Scalar(kind)), fields.count) {
    case ("a", 0): return .all
    case ("u", 2): return .url(texts[0], key: texts[1])
    case ("k", 1): return .key(texts[0])
    case ("p", 1): return .prefix(texts[0])
    case ("h", 2): return .host(texts[0], port: Int(texts[1]))
    case ("o", 1): return Int(texts[0]).map { .olderThan(seconds: $0) }
    case ("e", 0): return .expired
    case ("&", _):
      let parts = fields.compactMap { field in
        field.first.flatMap { $0 == UInt8(ascii: "&") ? nil : filter($0, field.dropFirst()) }
      }
      return parts.count == fields.count ? .every(parts) : nil
    default: return nil
    }
  }
}
