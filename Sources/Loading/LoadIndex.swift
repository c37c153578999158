/// Finds what is unanswered by the names that hosts give: URL, group, slot.
struct LoadIndex {
  struct Labels {
    var url: String?
    var group: String?
    var slot: String?
  }

  private var byURL: [String: Set<LoadID>] = [:]
  private var byGroup: [String: Set<LoadID>] = [:]
  private var bySlot: [String: Set<LoadID>] = [:]

  mutating func insert(_ id: LoadID, _ labels: Labels) {
    if let url = labels.url { byURL[url, default: []].insert(id) }
    if let group = labels.group { byGroup[group, default: []].insert(id) }
    if let slot = labels.slot { bySlot[slot, default: []].insert(id) }
  }

  mutating func remove(_ id: LoadID, _ labels: Labels) {
    if let url = labels.url { Self.remove(id, from: &byURL, at: url) }
    if let group = labels.group { Self.remove(id, from: &byGroup, at: group) }
    if let slot = labels.slot { Self.remove(id, from: &bySlot, at: slot) }
  }

  func loads(url: String) -> [LoadID] { (byURL[url] ?? []).sorted() }
  func loads(group: String) -> [LoadID] { (byGroup[group] ?? []).sorted() }
  func loads(slot: String) -> [LoadID] { (bySlot[slot] ?? []).sorted() }

  private static func remove(_ id: LoadID, from index: inout [String: Set<LoadID>], at name: String) {
    index[name]?.remove(id)
    if index[name]?.isEmpty == true { index[name] = nil }
  }
}
