/// The memory tier: image bytes under a limit, the least recently used evicted first. A pure value; every step but `clear`
/// is O(1).
public struct MemoryTier: Sendable {
  public struct Entry: Sendable, Equatable {
    public var response: StoredResponse
    public var bytes: [UInt8]
  }

  public struct Counts: Sendable, Equatable {
    public var entries = 0
    /// Bytes of image data.
    public var bytes: Int64 = 0
    public var limit: Int64 = 0
  }

  public private(set) var counts = Counts()

  /// What tells entries apart, but for Vary.
  private struct Identity: Hashable {
    var key: String
    var partition: String
    var variant: String

    var original: Identity { Identity(key: key, partition: partition, variant: "") }
  }

  private struct Slot {
    var entry: Entry
    var previous: Int
    var next: Int
  }

  private var slots: [Slot?] = []
  private var free: [Int] = []
  private var places: [Identity: [Int]] = [:]
  /// The names of the variants that there are of an original, whether that is there or not.
  private var variants: [Identity: Set<String>] = [:]
  private var mostRecent = -1
  private var leastRecent = -1
  private var cost: Int64 = 0

  /// Small entries count as this much, so that their number is bounded too.
  static let leastCost: Int64 = 512

  /// - Parameter limit: bytes of image data; 0 turns the tier off.
  public init(limit: Int64) { counts.limit = limit }

  /// All entries of the key, which differ by what their Vary names, newest response first. They count as used.
  public mutating func look(up key: String, partition: String = "", variant: String = "") -> [Entry] {
    guard let found = places[Identity(key: key, partition: partition, variant: variant)] else { return [] }
    for place in found { moveToFront(place) }
    if found.count == 1 { return [slots[found[0]]!.entry] }
    return found.map { slots[$0]!.entry }.sorted {
      ($0.response.responseTime, $0.response.id) > ($1.response.responseTime, $1.response.id)
    }
  }

  /// The most bytes that an entry may have.
  public var largestEntry: Int64 { counts.limit / 10 }

  /// Keeps an entry in place of what has the same key, partition, variant and varying fields.
  ///
  /// - Returns: false when it is larger than a tenth of the limit; then what it would have replaced is gone all the same.
  @discardableResult
  public mutating func store(_ response: StoredResponse, bytes: [UInt8]) -> Bool {
    remove(replacedBy: response)
    let identity = Identity(key: response.key, partition: response.partition, variant: response.variant)
    guard Int64(bytes.count) <= largestEntry else { return false }
    let place: Int
    let slot = Slot(entry: Entry(response: response, bytes: bytes), previous: -1, next: -1)
    if let unused = free.popLast() {
      place = unused
      slots[place] = slot
    } else {
      place = slots.count
      slots.append(slot)
    }
    places[identity, default: []].append(place)
    if !identity.variant.isEmpty { variants[identity.original, default: []].insert(identity.variant) }
    linkToFront(place)
    counts.entries += 1
    counts.bytes += Int64(bytes.count)
    cost += Self.cost(of: bytes)
    shrink(sparing: place)
    return true
  }

  /// Keeps what was found elsewhere, unless there is an entry that it would replace: that one may be newer.
  public mutating func promote(_ response: StoredResponse, bytes: [UInt8]) {
    if rival(of: response) == nil { store(response, bytes: bytes) }
  }

  /// Removes what has the same key, partition, variant and varying fields, and the variants that an original of another
  /// content had.
  public mutating func remove(replacedBy response: StoredResponse) {
    if let rival = rival(of: response) { remove(rival) }
    guard response.variant.isEmpty else { return }
    for place in variants(of: response) where slots[place]!.entry.response.originalDigest != response.digest {
      remove(place)
    }
  }

  /// Where the variants lie that are, or were, of the original that the response is or was made of.
  private func variants(of response: StoredResponse) -> [Int] {
    let original = Identity(key: response.key, partition: response.partition, variant: "")
    guard let names = variants[original] else { return [] }
    return names.flatMap { name in
      places[Identity(key: response.key, partition: response.partition, variant: name)] ?? []
    }.filter { slots[$0]!.entry.response.selection == response.selection }
  }

  private func rival(of response: StoredResponse) -> Int? {
    let identity = Identity(key: response.key, partition: response.partition, variant: response.variant)
    return places[identity]?.first { slots[$0]!.entry.response.selection == response.selection }
  }

  /// Replaces header fields and times after a 304, those of the variants as well. Nothing happens to an entry that is gone
  /// or that another has taken the place of.
  public mutating func update(_ response: StoredResponse) {
    if let place = place(of: response) { slots[place]!.entry.response = response }
    for place in variants(of: response)
    where slots[place]!.entry.response.originalDigest == response.originalDigest {
      slots[place]!.entry.response.adopt(responseOf: response)
    }
  }

  /// Notes what decoding has told. Nothing happens when the entry is gone or another has taken its place.
  public mutating func note(findingsOf response: StoredResponse) {
    if let place = place(of: response) { slots[place]!.entry.response.findings = response.findings }
  }

  /// Notes that the disk tier has no file of the response any more.
  public mutating func forgetFile(of response: StoredResponse) {
    if let place = place(of: response) { slots[place]!.entry.response.id = 0 }
  }

  private func place(of response: StoredResponse) -> Int? {
    guard let place = rival(of: response), let known = slots[place]?.entry.response else { return nil }
    return known.id == response.id && known.digest == response.digest ? place : nil
  }

  /// Clears what falls under the filter, variants with their originals.
  ///
  /// - Returns: what was cleared, for `DiskTier.clear` to count once.
  public mutating func clear(_ filter: ClearFilter, now: Int) -> [StoredResponse] {
    var matching: [Int] = []
    var originals: Set<Identity> = []
    for place in slots.indices {
      guard let response = slots[place]?.entry.response, filter.matches(response, now: now) else { continue }
      matching.append(place)
      if response.variant.isEmpty {
        originals.insert(Identity(key: response.key, partition: response.partition, variant: ""))
      }
    }
    if filter.dependsOnTime && !originals.isEmpty {
      let chosen = Set(matching)
      for place in slots.indices where !chosen.contains(place) {
        guard let response = slots[place]?.entry.response else { continue }
        let original = Identity(key: response.key, partition: response.partition, variant: "")
        if !response.variant.isEmpty && originals.contains(original) { matching.append(place) }
      }
    }
    return matching.map { place in
      defer { remove(place) }
      return slots[place]!.entry.response
    }
  }

  public mutating func setLimit(_ limit: Int64) {
    counts.limit = limit
    for place in slots.indices {
      if let slot = slots[place], Int64(slot.entry.bytes.count) > limit / 10 { remove(place) }
    }
    shrink(sparing: -1)
  }

  // MARK: Order

  private static func cost(of bytes: [UInt8]) -> Int64 { max(Int64(bytes.count), leastCost) }

  private mutating func shrink(sparing newest: Int) {
    while cost > counts.limit, leastRecent >= 0, leastRecent != newest || counts.limit == 0 { remove(leastRecent) }
  }

  private mutating func remove(_ place: Int) {
    guard let slot = slots[place] else { return }
    unlink(place)
    slots[place] = nil
    free.append(place)
    let response = slot.entry.response
    let identity = Identity(key: response.key, partition: response.partition, variant: response.variant)
    places[identity]?.removeAll { $0 == place }
    if places[identity]?.isEmpty ?? false {
      places[identity] = nil
      if !identity.variant.isEmpty {
        variants[identity.original]?.remove(identity.variant)
        if variants[identity.original]?.isEmpty ?? false { variants[identity.original] = nil }
      }
    }
    counts.entries -= 1
    counts.bytes -= Int64(slot.entry.bytes.count)
    cost -= Self.cost(of: slot.entry.bytes)
  }

  private mutating func moveToFront(_ place: Int) {
    if place == mostRecent { return }
    unlink(place)
    linkToFront(place)
  }

  private mutating func linkToFront(_ place: Int) {
    slots[place]!.previous = -1
    slots[place]!.next = mostRecent
    if mostRecent >= 0 { slots[mostRecent]!.previous = place } else { leastRecent = place }
    mostRecent = place
  }

  private mutating func unlink(_ place: Int) {
    let (previous, next) = (slots[place]!.previous, slots[place]!.next)
    if previous >= 0 { slots[previous]!.next = next } else { mostRecent = next }
    if next >= 0 { slots[next]!.previous = previous } else { leastRecent = previous }
  }
}
