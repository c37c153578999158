internal import HTTPTypes
internal import Text

/// The memory tier: image bytes under a limit. Who goes first is decided by use (`S3FIFO`): one scan of many
/// images does not displace those that are asked for again.
///
/// A pure value. Looking up and storing take time for the entries of the same key only; `clear`, which see, and
/// `setLimit` may look at all.
public struct MemoryTier: Sendable {
  /// An object: a hit hands on what is there, and copies none of its fields.
  public final class Entry: Sendable {
    public let response: StoredResponse
    public let bytes: [UInt8]

    init(response: StoredResponse, bytes: [UInt8]) { (self.response, self.bytes) = (response, bytes) }
  }

  public struct Counts: Sendable, Equatable {
    public var entries = 0
    /// Bytes of image data.
    public var bytes: Int64 = 0
    public var limit: Int64 = 0
    /// Entries that went to make room.
    public var evicted = 0
  }

  public private(set) var counts = Counts()

  /// What tells entries apart, but for Vary.
  private struct Identity: Hashable, Sendable {
    var key: ExactString
    var partition: String
    var variant: String

    init(key: String, partition: String, variant: String) {
      self.key = ExactString(key)
      self.partition = partition
      self.variant = variant
    }

    init(_ response: StoredResponse) {
      self.init(key: response.key, partition: response.partition, variant: response.variant)
    }
  }

  private var slots: [Entry?] = []
  private var free: [Int] = []
  private var order: S3FIFO
  private var byIdentity = PlaceGroups<Identity>()
  private var byKey = PlaceGroups<ExactString>()
  /// Those whose URL is not their key.
  private var byURL = PlaceGroups<ExactString>()
  private var variantCount = 0

  /// Small entries count as this much, so that their number is bounded too.
  static let leastCost: Int64 = 512

  /// - Parameter limit: bytes of images with their headers; 0 turns the tier off.
  public init(limit: Int64) {
    counts.limit = limit
    order = S3FIFO(limit: limit)
  }

  /// All entries of the key, which differ by what their Vary names, newest response first. They count as used.
  public mutating func look(up key: String, partition: String = "", variant: String = "") -> [Entry] {
    let identity = Identity(key: key, partition: partition, variant: variant)
    guard let found = byIdentity.list(of: identity) else { return [] }
    if let only = found.only {
      order.use(only)
      return [slots[only]!]
    }
    for place in byIdentity.places(of: identity) { order.use(place) }
    return peek(at: key, partition: partition, variant: variant)
  }

  /// The same entries, without counting as a use.
  public func peek(at key: String, partition: String = "", variant: String = "") -> [Entry] {
    byIdentity.places(of: Identity(key: key, partition: partition, variant: variant)).map { slots[$0]! }.sorted {
      ($0.response.responseTime, $0.response.id) > ($1.response.responseTime, $1.response.id)
    }
  }

  /// Whether there is an original that has taken the place of the one that the variant was made of.
  public func hasReplacement(forOriginalOf variant: StoredResponse) -> Bool {
    let originals = Identity(key: variant.key, partition: variant.partition, variant: "")
    return byIdentity.places(of: originals).contains { place in
      slots[place]!.response.digest != variant.originalDigest
        && slots[place]!.response.varyKey == variant.varyKey
    }
  }

  /// The most bytes that an entry may have.
  public var largestEntry: Int64 { counts.limit / 10 }

  /// Keeps an entry in place of what has the same key, partition, variant and varying fields.
  ///
  /// - Returns: false when it is larger than a tenth of the limit; then what it would have replaced is gone all the
  ///   same.
  @discardableResult
  public mutating func store(_ response: StoredResponse, bytes: [UInt8]) -> Bool {
    let conflictingRow = conflictingRow(of: response)
    remove(replacedBy: response, conflictingRow)
    removeVariantsOfOlderOriginals(beside: response)
    let cost = max(Int64(bytes.count + response.headers.byteCount + response.url.utf8.count), Self.leastCost)
    guard Int64(bytes.count) <= largestEntry, cost <= counts.limit else { return false }
    let place = free.popLast() ?? slots.count
    let evicted = order.insert(
      place, cost: cost, fingerprint: Identity(response).hashValue, isKnown: conflictingRow != nil)
    for place in evicted { evict(place) }
    let entry = Entry(response: response, bytes: bytes)
    if place == slots.count { slots.append(entry) } else { slots[place] = entry }
    label(place, response)
    counts.entries += 1
    counts.bytes += Int64(bytes.count)
    removeSurplus(beside: place)
    return true
  }

  /// Removes the one that came first when too many differ by their varying fields.
  private mutating func removeSurplus(beside place: Int) {
    let identity = Identity(slots[place]!.response)
    guard byIdentity.list(of: identity)?.only == nil else { return }
    let places = byIdentity.places(of: identity)
    guard places.count > StoredResponse.mostSelections else { return }
    func arrival(_ place: Int) -> (Int, Int64) { (slots[place]!.response.responseTime, slots[place]!.response.id) }
    if let first = places.filter({ $0 != place }).min(by: { arrival($0) < arrival($1) }) { remove(first) }
  }

  /// Keeps what was read elsewhere, unless there is an entry that it would replace: that one may be newer.
  public mutating func promote(_ response: StoredResponse, bytes: [UInt8]) {
    guard conflictingRow(of: response) == nil else { return }
    var response = response
    response.isVerified = true
    store(response, bytes: bytes)
  }

  /// Removes what has the same key, partition, variant and varying fields, and the variants that an original of another
  /// content had. Those of the same content are as fresh as the new one is.
  public mutating func remove(replacedBy response: StoredResponse) {
    remove(replacedBy: response, conflictingRow(of: response))
  }

  private mutating func remove(replacedBy response: StoredResponse, _ conflictingRow: Int?) {
    if let conflictingRow { remove(conflictingRow) }
    guard response.variant.isEmpty else { return }
    for place in variants(of: response) {
      if slots[place]!.response.originalDigest == response.digest {
        change(place) { $0.adopt(responseOf: response) }
      } else {
        remove(place)
      }
    }
  }

  /// Where the variants lie that are, or were, of the original that the response is or was made of.
  private func variants(of response: StoredResponse) -> [Int] {
    guard variantCount > 0 else { return [] }
    return byKey.places(of: ExactString(response.key)).filter { place in
      let other = slots[place]!.response
      return !other.variant.isEmpty && other.partition == response.partition && other.varyKey == response.varyKey
    }
  }

  /// Removes the variants of an original that this one's has taken the place of, as another worker may have had it do.
  private mutating func removeVariantsOfOlderOriginals(beside response: StoredResponse) {
    guard !response.variant.isEmpty else { return }
    for place in variants(of: response) {
      let other = slots[place]!.response
      if other.originalDigest != response.originalDigest, other.responseTime < response.responseTime { remove(place) }
    }
  }

  private func conflictingRow(of response: StoredResponse) -> Int? {
    byIdentity.places(of: Identity(response)).first { slots[$0]!.response.varyKey == response.varyKey }
  }

  /// Replaces header fields and times after a 304, those of the variants as well. Nothing happens to an entry that is
  /// gone or that another has taken the place of.
  public mutating func update(_ response: StoredResponse) {
    if let place = place(of: response), let old = slots[place]?.response {
      unlabel(place, old)
      change(place) { $0 = response }
      label(place, response)
    }
    for place in variants(of: response) where slots[place]!.response.originalDigest == response.originalDigest {
      change(place) { $0.adopt(responseOf: response) }
    }
  }

  /// Adds what decoding has told. Nothing happens when the entry is gone or another has taken its place.
  public mutating func note(findingsOf response: StoredResponse) {
    guard let place = place(of: response), let metadata = response.metadata else { return }
    change(place) { $0.metadata = $0.metadata?.adding(metadata) ?? metadata }
  }

  /// Notes that the disk tier has no file of the response any more.
  public mutating func forgetFile(of response: StoredResponse) {
    if let place = place(of: response) { change(place) { $0.id = 0 } }
  }

  private mutating func change(_ place: Int, _ change: (inout StoredResponse) -> Void) {
    guard let entry = slots[place] else { return }
    var response = entry.response
    change(&response)
    slots[place] = Entry(response: response, bytes: entry.bytes)
  }

  private func place(of response: StoredResponse) -> Int? {
    guard let place = conflictingRow(of: response), let known = slots[place]?.response else { return nil }
    return known.id == response.id && known.digest == response.digest ? place : nil
  }

  /// Clears what falls under the filter, variants with their originals.
  ///
  /// By key and by URL it takes as long as there are matches. The other filters look at every entry, of which there are
  /// at most one for each 512 bytes of the limit: an order of all keys would cost each entry more than those rare calls
  /// do.
  ///
  /// - Returns: what was cleared, for `DiskTier.clear` to count once.
  public mutating func clear(_ filter: ClearFilter, now: Int) -> [StoredResponse] {
    var matching = places(matching: filter, now: now)
    if filter.dependsOnTime { matching += variants(ofOriginalsIn: matching) }
    return matching.map { place in
      defer { remove(place) }
      return slots[place]!.response
    }
  }

  private func places(matching filter: ClearFilter, now: Int) -> [Int] {
    let candidates =
      switch filter {
      case .key(let key): byKey.places(of: ExactString(key))
      case .url(let url, let key):
        Array(Set([key, url].flatMap { byKey.places(of: ExactString($0)) } + byURL.places(of: ExactString(url))))
      case .all, .prefix, .host, .olderThan, .expired: Array(slots.indices)
      }
    return candidates.filter { slots[$0].map { filter.matches($0.response, now: now) } ?? false }
  }

  /// Those that are not among the places themselves.
  private func variants(ofOriginalsIn places: [Int]) -> [Int] {
    let chosen = Set(places)
    let originals = Set(places.map { Identity(slots[$0]!.response) }.filter(\.variant.isEmpty))
    return originals.flatMap { original in
      byKey.places(of: original.key).filter { place in
        let response = slots[place]!.response
        return !response.variant.isEmpty && response.partition == original.partition && !chosen.contains(place)
      }
    }
  }

  public mutating func setLimit(_ limit: Int64) {
    counts.limit = limit
    for place in slots.indices {
      if let entry = slots[place], Int64(entry.bytes.count) > limit / 10 {
        remove(place)
        counts.evicted += 1
      }
    }
    for place in order.setLimit(limit) { evict(place) }
  }

  private mutating func remove(_ place: Int) {
    order.remove(place)
    vacate(place)
  }

  /// Lets go of what the order gave up.
  private mutating func evict(_ place: Int) {
    vacate(place)
    counts.evicted += 1
  }

  private mutating func vacate(_ place: Int) {
    guard let entry = slots[place] else { return }
    slots[place] = nil
    free.append(place)
    unlabel(place, entry.response)
    counts.entries -= 1
    counts.bytes -= Int64(entry.bytes.count)
  }

  private mutating func label(_ place: Int, _ response: StoredResponse) {
    byIdentity.insert(place, Identity(response))
    byKey.insert(place, ExactString(response.key))
    if !response.url.hasSameBytes(as: response.key) { byURL.insert(place, ExactString(response.url)) }
    if !response.variant.isEmpty { variantCount += 1 }
  }

  private mutating func unlabel(_ place: Int, _ response: StoredResponse) {
    byIdentity.remove(place, Identity(response))
    byKey.remove(place, ExactString(response.key))
    if !response.url.hasSameBytes(as: response.key) { byURL.remove(place, ExactString(response.url)) }
    if !response.variant.isEmpty { variantCount -= 1 }
  }
}
