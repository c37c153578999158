internal import HTTPTypes
internal import Text
internal import Threads

/// The memory tier: image bytes under a limit, evicted by use (`S3FIFO`). One scan of many images does not displace the
/// images that are used again.
///
/// A pure value. Look-ups and stores take time proportional to the entries of the key; `clear` (see there) and
/// `setLimit` may examine all entries.
public struct MemoryTier: Sendable {
  /// A class, so that a hit passes on a reference instead of copying the fields.
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
    /// Entries that were evicted.
    public var evicted = 0
  }

  public private(set) var counts = Counts()

  /// The identity of an entry, except for its varying fields.
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
  private var byIdentity = IndexGroups<Identity>()
  private var byKey = IndexGroups<ExactString>()
  /// The entries whose URL differs from their key.
  private var byURL = IndexGroups<ExactString>()
  private var variantCount = 0

  /// The minimum cost of an entry, which bounds the number of small entries.
  static let minCost: Int64 = 512

  /// - Parameter limit: bytes of images with their header fields; 0 disables the tier.
  public init(limit: Int64) {
    counts.limit = limit
    order = S3FIFO(limit: limit)
  }

  /// All entries of the key, which differ in the request fields that their Vary names, newest first. Counts as a use.
  public mutating func look(up key: String, partition: String = "", variant: String = "") -> [Entry] {
    let identity = Identity(key: key, partition: partition, variant: variant)
    guard let list = byIdentity.list(of: identity) else { return [] }
    if list.count == 1 {
      let only = Int(list.first)
      order.use(only)
      return [slots[only]!]
    }
    for index in byIdentity.indices(of: identity) { order.use(index) }
    return peek(at: key, partition: partition, variant: variant)
  }

  /// The same entries as `look` returns, without counting a use.
  public func peek(at key: String, partition: String = "", variant: String = "") -> [Entry] {
    byIdentity.indices(of: Identity(key: key, partition: partition, variant: variant)).map { slots[$0]! }.sorted {
      ($0.response.responseTime, $0.response.id) > ($1.response.responseTime, $1.response.id)
    }
  }

  /// Whether the original that the variant was made from has been replaced by one of another content.
  public func hasReplacement(forOriginalOf variant: StoredResponse) -> Bool {
    let originals = Identity(key: variant.key, partition: variant.partition, variant: "")
    return byIdentity.indices(of: originals).contains { index in
      slots[index]!.response.content.digest != variant.originalDigest
        && slots[index]!.response.varyKey == variant.varyKey
    }
  }

  /// The maximum size of an entry in bytes.
  public var largestEntry: Int64 { counts.limit / 10 }

  /// Stores an entry and replaces the one with the same key, partition, variant and varying fields.
  ///
  /// - Returns: false if the entry is larger than a tenth of the limit. The entry that it would have replaced is
  ///   removed even then.
  @discardableResult
  public mutating func store(_ response: StoredResponse, bytes: [UInt8]) -> Bool {
    let conflictingIndex = conflictingIndex(of: response)
    remove(replacedBy: response, conflictingIndex)
    removeVariantsOfOlderOriginals(beside: response)
    let cost = Self.cost(response, bytes: bytes.count)
    guard Int64(bytes.count) <= largestEntry, cost <= counts.limit else { return false }
    let index = free.popLast() ?? slots.count
    let evicted = order.insert(
      index, cost: cost, fingerprint: Identity(response).hashValue, isKnown: conflictingIndex != nil)
    for index in evicted { evict(index) }
    let entry = Entry(response: response, bytes: bytes)
    if index == slots.count { slots.append(entry) } else { slots[index] = entry }
    label(index, response)
    counts.entries += 1
    counts.bytes += Int64(bytes.count)
    removeExcessVariant(beside: index)
    return true
  }

  private static func cost(_ response: StoredResponse, bytes: Int) -> Int64 {
    let facts = response.metadata?.facts.byteCount ?? 0
    return max(Int64(bytes + response.headers.byteCount + response.url.utf8.count + facts), minCost)
  }

  /// Removes the oldest entry if there are more than `maxVaryVariants` with different varying fields.
  private mutating func removeExcessVariant(beside index: Int) {
    let identity = Identity(slots[index]!.response)
    guard let list = byIdentity.list(of: identity), list.count > 1 else { return }
    let indices = byIdentity.indices(of: identity)
    guard indices.count > StoredResponse.maxVaryVariants else { return }
    func arrival(_ index: Int) -> (Int, Int64) { (slots[index]!.response.responseTime, slots[index]!.response.id) }
    if let first = indices.filter({ $0 != index }).min(by: { arrival($0) < arrival($1) }) { remove(first) }
  }

  /// Stores a response that was read from another tier, unless there is an entry that it would replace: that one may be
  /// newer.
  public mutating func promote(_ response: StoredResponse, bytes: [UInt8]) {
    guard conflictingIndex(of: response) == nil else { return }
    var response = response
    response.isVerified = true
    store(response, bytes: bytes)
  }

  /// Removes the entry with the same key, partition, variant and varying fields, and the variants of an original of
  /// other content. Variants of the same content get the header fields and times of the response.
  public mutating func remove(replacedBy response: StoredResponse) {
    remove(replacedBy: response, conflictingIndex(of: response))
  }

  private mutating func remove(replacedBy response: StoredResponse, _ conflictingIndex: Int?) {
    if let conflictingIndex { remove(conflictingIndex) }
    guard response.variant.isEmpty else { return }
    for index in variants(of: response) {
      if slots[index]!.response.originalDigest == response.content.digest {
        change(index) { $0.adopt(responseOf: response) }
      } else {
        remove(index)
      }
    }
  }

  /// The variants of the current or an earlier original with the key, partition and varying fields of the response.
  private func variants(of response: StoredResponse) -> [Int] {
    guard variantCount > 0 else { return [] }
    return byKey.indices(of: ExactString(response.key)).filter { index in
      let other = slots[index]!.response
      return !other.variant.isEmpty && other.partition == response.partition && other.varyKey == response.varyKey
    }
  }

  /// Removes the variants of an older original, which another worker may have replaced.
  private mutating func removeVariantsOfOlderOriginals(beside response: StoredResponse) {
    guard !response.variant.isEmpty else { return }
    for index in variants(of: response) {
      let other = slots[index]!.response
      if other.originalDigest != response.originalDigest, other.responseTime < response.responseTime { remove(index) }
    }
  }

  private func conflictingIndex(of response: StoredResponse) -> Int? {
    byIdentity.indices(of: Identity(response)).first { slots[$0]!.response.varyKey == response.varyKey }
  }

  /// Replaces header fields and times after a 304, also those of the variants. Does nothing if the entry is removed or
  /// replaced.
  public mutating func update(_ response: StoredResponse) {
    if let index = index(of: response), let old = slots[index]?.response {
      unlabel(index, old)
      change(index) { $0 = response }
      label(index, response)
    }
    for index in variants(of: response) where slots[index]!.response.originalDigest == response.originalDigest {
      change(index) { $0.adopt(responseOf: response) }
    }
  }

  /// Merges the decode metadata into the entry. Does nothing if the entry is removed or replaced.
  public mutating func recordMetadata(of response: StoredResponse) {
    guard let index = index(of: response), let metadata = response.metadata else { return }
    change(index) { $0.metadata = $0.metadata?.adding(metadata) ?? metadata }
  }

  /// Records that the disk tier no longer has a file of the response.
  public mutating func recordMissingFile(of response: StoredResponse) {
    if let index = index(of: response) { change(index) { $0.id = 0 } }
  }

  private mutating func change(_ index: Int, _ change: (inout StoredResponse) -> Void) {
    guard let entry = slots[index] else { return assertionFailure("an entry that is looked up must exist") }
    var response = entry.response
    change(&response)
    slots[index] = Entry(response: response, bytes: entry.bytes)
    order.setCost(Self.cost(response, bytes: entry.bytes.count), of: index)
  }

  private func index(of response: StoredResponse) -> Int? {
    guard let index = conflictingIndex(of: response), let stored = slots[index]?.response else { return nil }
    return stored.id == response.id && stored.content.digest == response.content.digest ? index : nil
  }

  /// Removes the entries that match the filter, including the variants of matching originals.
  ///
  /// Filters by key and by URL take time proportional to the matches. The other filters examine every entry, at most
  /// one for each 512 bytes of the limit: an ordered index of the keys would cost each entry more than these rare calls
  /// do.
  ///
  /// - Returns: the removed responses, so that `DiskTier.clear` counts each one once.
  public mutating func clear(_ filter: ClearFilter, now: Int) -> [StoredResponse] {
    var matching = indices(matching: filter, now: now)
    if filter.dependsOnTime { matching += variants(ofOriginalsIn: matching) }
    return matching.map { index in
      defer { remove(index) }
      return slots[index]!.response
    }
  }

  private func indices(matching filter: ClearFilter, now: Int) -> [Int] {
    let candidates =
      switch filter {
      case .key(let key): byKey.indices(of: ExactString(key))
      case .url(let url, let key):
        Array(Set([key, url].flatMap { byKey.indices(of: ExactString($0)) } + byURL.indices(of: ExactString(url))))
      case .all, .prefix, .host, .olderThan, .expired, .every: Array(slots.indices)
      }
    return candidates.filter { slots[$0].map { filter.matches($0.response, now: now) } ?? false }
  }

  /// The variants of these originals that are not in `indices` themselves.
  private func variants(ofOriginalsIn indices: [Int]) -> [Int] {
    let chosen = Set(indices)
    let originals = Set(indices.map { Identity(slots[$0]!.response) }.filter(\.variant.isEmpty))
    return originals.flatMap { original in
      byKey.indices(of: original.key).filter { index in
        let response = slots[index]!.response
        return !response.variant.isEmpty && response.partition == original.partition && !chosen.contains(index)
      }
    }
  }

  public mutating func setLimit(_ limit: Int64) {
    counts.limit = limit
    for index in slots.indices {
      if let entry = slots[index], Int64(entry.bytes.count) > limit / 10 {
        remove(index)
        counts.evicted += 1
      }
    }
    for index in order.setLimit(limit) { evict(index) }
  }

  private mutating func remove(_ index: Int) {
    order.remove(index)
    vacate(index)
  }

  /// Removes an entry that `order` has evicted.
  private mutating func evict(_ index: Int) {
    vacate(index)
    counts.evicted += 1
  }

  private mutating func vacate(_ index: Int) {
    guard let entry = slots[index] else { return assertionFailure("an entry that is removed must exist") }
    slots[index] = nil
    free.append(index)
    unlabel(index, entry.response)
    counts.entries -= 1
    counts.bytes -= Int64(entry.bytes.count)
  }

  private mutating func label(_ index: Int, _ response: StoredResponse) {
    byIdentity.insert(index, Identity(response))
    byKey.insert(index, ExactString(response.key))
    if !response.url.hasSameBytes(as: response.key) { byURL.insert(index, ExactString(response.url)) }
    if !response.variant.isEmpty { variantCount += 1 }
  }

  private mutating func unlabel(_ index: Int, _ response: StoredResponse) {
    byIdentity.remove(index, Identity(response))
    byKey.remove(index, ExactString(response.key))
    if !response.url.hasSameBytes(as: response.key) { byURL.remove(index, ExactString(response.url)) }
    if !response.variant.isEmpty { variantCount -= 1 }
  }
}

/// Groups of indices by label. Every operation is O(1), but for those that return a group.
struct IndexGroups<Label: Hashable & Sendable>: Sendable {
  private var lists: [Label: IndexLinkedList] = [:]
  private var links: [IndexLinkedList.Link] = []

  func list(of label: Label) -> IndexLinkedList? { lists[label] }

  /// The indices in the order of insertion.
  func indices(of label: Label) -> [Int] { lists[label].map { $0.elements(in: links).map(Int.init) } ?? [] }

  mutating func insert(_ index: Int, _ label: Label) {
    links.reach(Int32(index))
    lists[label, default: IndexLinkedList()].append(Int32(index), in: &links)
  }

  mutating func remove(_ index: Int, _ label: Label) {
    guard var list = lists[label] else { return assertionFailure("an index must be in the group that it leaves") }
    list.remove(Int32(index), in: &links)
    lists[label] = list.isEmpty ? nil : list
  }
}
