/// A first-in, first-out queue. Unlike a slice whose first elements are dropped, it releases the elements that it has
/// returned.
public struct FIFO<Element> {
  // Elements before `first` are nil.
  @usableFromInline var elements: ArraySlice<Element?> = []

  @inlinable public init() {}

  @inlinable public var isEmpty: Bool { elements.isEmpty }
  @inlinable public var count: Int { elements.count }
  @inlinable public var first: Element? { elements.first ?? nil }

  @inlinable public mutating func append(_ element: Element) { elements.append(element) }

  @inlinable @discardableResult
  public mutating func popFirst() -> Element? {
    guard !elements.isEmpty else { return nil }
    let element = elements[elements.startIndex].take()
    elements.removeFirst()
    // Release the capacity too.
    if elements.isEmpty { elements = [] }
    return element
  }

  @inlinable public mutating func removeAll(where isUnwanted: (Element) -> Bool) {
    elements.removeAll { element in element.map(isUnwanted) ?? true }
  }
}
