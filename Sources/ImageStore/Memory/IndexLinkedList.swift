/// Doubly linked lists over places, which are small numbers: each place is in one list at most. Every step is O(1).
struct IndexLinkedLists {
  struct List: Equatable {
    fileprivate(set) var first = -1
    fileprivate(set) var last = -1

    var isEmpty: Bool { first < 0 }
    /// Its place, if it has just one.
    var only: Int? { first == last && first >= 0 ? first : nil }
  }

  private var links: [(previous: Int, next: Int)] = []

  mutating func append(_ place: Int, to list: inout List) {
    while links.count <= place { links.append((-1, -1)) }
    links[place] = (list.last, -1)
    if list.last >= 0 { links[list.last].next = place } else { list.first = place }
    list.last = place
  }

  mutating func remove(_ place: Int, from list: inout List) {
    let (previous, next) = links[place]
    if previous >= 0 { links[previous].next = next } else { list.first = next }
    if next >= 0 { links[next].previous = previous } else { list.last = previous }
    links[place] = (-1, -1)
  }

  /// In the order in which they were appended.
  func places(of list: List) -> [Int] {
    var places: [Int] = []
    var place = list.first
    while place >= 0 {
      places.append(place)
      place = links[place].next
    }
    return places
  }
}

/// Places by a label that several may share.
struct PlaceGroups<Label: Hashable & Sendable>: Sendable {
  private var lists: [Label: IndexLinkedLists.List] = [:]
  private var links = IndexLinkedLists()

  func list(of label: Label) -> IndexLinkedLists.List? { lists[label] }

  func places(of label: Label) -> [Int] { lists[label].map(links.places(of:)) ?? [] }

  mutating func insert(_ place: Int, _ label: Label) { links.append(place, to: &lists[label, default: .init()]) }

  mutating func remove(_ place: Int, _ label: Label) {
    guard var list = lists[label] else { return }
    links.remove(place, from: &list)
    lists[label] = list.isEmpty ? nil : list
  }
}
