internal import Threads

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
