/// A doubly linked list in an array of links: elements are slots, and every operation is O(1).
///
/// The queue keeps each queued job in one list and each origin in at most one list per queue class, so that removal
/// from the middle of a queue of a million costs as much as removal from its end.
struct IndexLinkedList {
  struct Link {
    fileprivate(set) var previous = IndexLinkedList.none
    fileprivate(set) var next = IndexLinkedList.none
  }

  static let none: Int32 = -1

  private(set) var first = IndexLinkedList.none
  private(set) var last = IndexLinkedList.none
  private var length: Int32 = 0

  var count: Int { Int(length) }
  var isEmpty: Bool { length == 0 }

  mutating func append(_ slot: Int32, in links: inout [Link]) {
    links[Int(slot)] = Link(previous: last, next: IndexLinkedList.none)
    if last == IndexLinkedList.none { first = slot } else { links[Int(last)].next = slot }
    last = slot
    length += 1
  }

  mutating func prepend(_ slot: Int32, in links: inout [Link]) {
    links[Int(slot)] = Link(previous: IndexLinkedList.none, next: first)
    if first == IndexLinkedList.none { last = slot } else { links[Int(first)].previous = slot }
    first = slot
    length += 1
  }

  /// - Parameter other: any element except the last.
  mutating func insert(_ slot: Int32, after other: Int32, in links: inout [Link]) {
    let next = links[Int(other)].next
    links[Int(slot)] = Link(previous: other, next: next)
    links[Int(other)].next = slot
    links[Int(next)].previous = slot
    length += 1
  }

  mutating func remove(_ slot: Int32, in links: inout [Link]) {
    let link = links[Int(slot)]
    if link.previous == IndexLinkedList.none { first = link.next } else { links[Int(link.previous)].next = link.next }
    if link.next == IndexLinkedList.none { last = link.previous } else { links[Int(link.next)].previous = link.previous }
    links[Int(slot)] = Link()
    length -= 1
  }

  /// The elements from first to last.
  func elements(in links: [Link]) -> some Sequence<Int32> {
    sequence(state: first) { slot in
      guard slot != IndexLinkedList.none else { return nil }
      defer { slot = links[Int(slot)].next }
      return slot
    }
  }
}

extension [IndexLinkedList.Link] {
  /// Extends the array to include the link of a slot.
  mutating func reach(_ slot: Int32) {
    while count <= Int(slot) { append(IndexLinkedList.Link()) }
  }
}
