/// Doubly linked lists of indices, which must be small numbers. Each index is in at most one list. Every operation is
/// O(1).
struct IndexLinkedLists {
  struct List: Equatable {
    fileprivate(set) var first = -1
    fileprivate(set) var last = -1

    var isEmpty: Bool { first < 0 }
    /// The index of the only element; nil if the list has none or several.
    var only: Int? { first == last && first >= 0 ? first : nil }
  }

  private var links: [(previous: Int, next: Int)] = []

  mutating func append(_ index: Int, to list: inout List) {
    while links.count <= index { links.append((-1, -1)) }
    links[index] = (list.last, -1)
    if list.last >= 0 { links[list.last].next = index } else { list.first = index }
    list.last = index
  }

  mutating func remove(_ index: Int, from list: inout List) {
    let (previous, next) = links[index]
    if previous >= 0 { links[previous].next = next } else { list.first = next }
    if next >= 0 { links[next].previous = previous } else { list.last = previous }
    links[index] = (-1, -1)
  }

  /// The indices in the order of insertion.
  func indices(of list: List) -> [Int] {
    var indices: [Int] = []
    var index = list.first
    while index >= 0 {
      indices.append(index)
      index = links[index].next
    }
    return indices
  }
}

/// Groups of indices by label.
struct IndexGroups<Label: Hashable & Sendable>: Sendable {
  private var lists: [Label: IndexLinkedLists.List] = [:]
  private var links = IndexLinkedLists()

  func list(of label: Label) -> IndexLinkedLists.List? { lists[label] }

  func indices(of label: Label) -> [Int] { lists[label].map(links.indices(of:)) ?? [] }

  mutating func insert(_ index: Int, _ label: Label) { links.append(index, to: &lists[label, default: .init()]) }

  mutating func remove(_ index: Int, _ label: Label) {
    guard var list = lists[label] else { return assertionFailure("an index must be in the group that it leaves") }
    links.remove(index, from: &list)
    lists[label] = list.isEmpty ? nil : list
  }
}
