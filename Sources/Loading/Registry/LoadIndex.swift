internal import Text

/// Finds loads and prefetches under way by the labels that hosts give: URL, group, slot.
struct LoadIndex {
  struct Labels {
    var url: String?
    var group: String?
    var slot: String?
  }

  /// The members of a label. Most labels have one, for which no set is allocated.
  private enum Members {
    case one(LoadID)
    case many(Set<LoadID>)
  }

  private var byURL: [ExactString: Members] = [:]
  private var byGroup: [ExactString: Members] = [:]
  private var bySlot: [ExactString: Members] = [:]

  var isEmpty: Bool { byURL.isEmpty && byGroup.isEmpty && bySlot.isEmpty }

  mutating func insert(_ id: LoadID, _ labels: Labels) {
    if let url = labels.url { Self.insert(id, into: &byURL, at: ExactString(url)) }
    if let group = labels.group { Self.insert(id, into: &byGroup, at: ExactString(group)) }
    if let slot = labels.slot { Self.insert(id, into: &bySlot, at: ExactString(slot)) }
  }

  mutating func remove(_ id: LoadID, _ labels: Labels) {
    if let url = labels.url { Self.remove(id, from: &byURL, at: ExactString(url)) }
    if let group = labels.group { Self.remove(id, from: &byGroup, at: ExactString(group)) }
    if let slot = labels.slot { Self.remove(id, from: &bySlot, at: ExactString(slot)) }
  }

  /// The loads and prefetches with a label, in the order in which they were submitted.
  func loads(url: String) -> [LoadID] { Self.list(byURL[ExactString(url)]) }
  func loads(group: String) -> [LoadID] { Self.list(byGroup[ExactString(group)]) }
  func loads(slot: String) -> [LoadID] { Self.list(bySlot[ExactString(slot)]) }

  /// Any one of the loads that `loads(slot:)` returns.
  func someLoad(slot: String) -> LoadID? {
    switch bySlot[ExactString(slot)] {
    case nil: nil
    case .one(let id): id
    case .many(let ids): ids.first
    }
  }

  private static func list(_ members: Members?) -> [LoadID] {
    switch members {
    case nil: []
    case .one(let id): [id]
    case .many(let ids): ids.sorted()
    }
  }

  private static func insert(_ id: LoadID, into index: inout [ExactString: Members], at name: ExactString) {
    switch index[name] {
    case nil: index[name] = .one(id)
    case .one(let other): index[name] = .many([other, id])
    case .many(var ids):
      // Remove it first, so that the set is mutated in place and not copied.
      index[name] = nil
      ids.insert(id)
      index[name] = .many(ids)
    }
  }

  private static func remove(_ id: LoadID, from index: inout [ExactString: Members], at name: ExactString) {
    switch index[name] {
    case .one(id): index[name] = nil
    case nil, .one: break
    case .many(var ids):
      index[name] = nil
      ids.remove(id)
      if !ids.isEmpty { index[name] = .many(ids) }
    }
  }
}
