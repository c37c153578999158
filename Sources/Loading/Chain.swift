/// A doubly linked list through an array of links: elements are slot numbers, every operation is O(1).
///
/// The queue keeps each waiting job in one chain and each origin in at most one chain a priority, so that leaving the
/// middle of a backlog of a million costs as much as leaving its end.
struct Chain {
  struct Link {
    var previous = Chain.none
    var next = Chain.none
  }

  static let none = -1

  private(set) var first = Chain.none
  private(set) var last = Chain.none
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  mutating func append(_ slot: Int, in links: inout [Link]) {
    links[slot] = Link(previous: last, next: Chain.none)
    if last == Chain.none { first = slot } else { links[last].next = slot }
    last = slot
    count += 1
  }

  mutating func prepend(_ slot: Int, in links: inout [Link]) {
    links[slot] = Link(previous: Chain.none, next: first)
    if first == Chain.none { last = slot } else { links[first].previous = slot }
    first = slot
    count += 1
  }

  mutating func remove(_ slot: Int, in links: inout [Link]) {
    let link = links[slot]
    if link.previous == Chain.none { first = link.next } else { links[link.previous].next = link.next }
    if link.next == Chain.none { last = link.previous } else { links[link.next].previous = link.previous }
    links[slot] = Link()
    count -= 1
  }
}
