/// A doubly linked list in an array of links: elements are slots, and every operation is O(1).
///
/// Several lists may share one array, if each slot is in one of them at most. Removal from the middle of a queue of a
/// million costs as much as removal from its end.
@frozen
public struct IndexLinkedList: Sendable {
  @frozen
  public struct Link: Sendable {
    @usableFromInline var before = IndexLinkedList.none
    @usableFromInline var after = IndexLinkedList.none

    @inlinable public init() {}

    @inlinable init(before: Int32, after: Int32) { (self.before, self.after) = (before, after) }

    @inlinable public var previous: Int32 { before }
    @inlinable public var next: Int32 { after }
  }

  @inlinable public static var none: Int32 { -1 }

  @usableFromInline var front = IndexLinkedList.none
  @usableFromInline var back = IndexLinkedList.none
  @usableFromInline var length: Int32 = 0

  @inlinable public init() {}

  @inlinable public var first: Int32 { front }
  @inlinable public var last: Int32 { back }
  @inlinable public var count: Int { Int(length) }
  @inlinable public var isEmpty: Bool { length == 0 }

  @inlinable public mutating func append(_ slot: Int32, in links: inout [Link]) {
    links[Int(slot)] = Link(before: back, after: IndexLinkedList.none)
    if back == IndexLinkedList.none { front = slot } else { links[Int(back)].after = slot }
    back = slot
    length += 1
  }

  @inlinable public mutating func prepend(_ slot: Int32, in links: inout [Link]) {
    links[Int(slot)] = Link(before: IndexLinkedList.none, after: front)
    if front == IndexLinkedList.none { back = slot } else { links[Int(front)].before = slot }
    front = slot
    length += 1
  }

  /// - Parameter other: any element except the last.
  @inlinable public mutating func insert(_ slot: Int32, after other: Int32, in links: inout [Link]) {
    let next = links[Int(other)].after
    links[Int(slot)] = Link(before: other, after: next)
    links[Int(other)].after = slot
    links[Int(next)].before = slot
    length += 1
  }

  @inlinable public mutating func remove(_ slot: Int32, in links: inout [Link]) {
    let link = links[Int(slot)]
    if link.before == IndexLinkedList.none { front = link.after } else { links[Int(link.before)].after = link.after }
    if link.after == IndexLinkedList.none { back = link.before } else { links[Int(link.after)].before = link.before }
    links[Int(slot)] = Link()
    length -= 1
  }

  /// The elements from first to last.
  @inlinable public func elements(in links: [Link]) -> some Sequence<Int32> {
    sequence(state: front) { slot in
      guard slot != IndexLinkedList.none else { return nil }
      defer { slot = links[Int(slot)].after }
      return slot
    }
  }
}

extension [IndexLinkedList.Link] {
  /// Extends the array to include the link of a slot.
  @inlinable public mutating func reach(_ slot: Int32) {
    while count <= Int(slot) { append(IndexLinkedList.Link()) }
  }
}
