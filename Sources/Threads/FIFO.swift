/// First in, first out. Unlike a slice whose first elements are dropped, it keeps nothing that it has given out.
public struct FIFO<Element> {
  // Those before `first` are nil.
  private var elements: ArraySlice<Element?> = []

  public init() {}

  public var isEmpty: Bool { elements.isEmpty }
  public var count: Int { elements.count }
  public var first: Element? { elements.first ?? nil }

  public mutating func append(_ element: Element) { elements.append(element) }

  @discardableResult
  public mutating func popFirst() -> Element? {
    guard !elements.isEmpty else { return nil }
    let element = elements[elements.startIndex].take()
    elements.removeFirst()
    // Nor the room for a crowd that is gone.
    if elements.isEmpty { elements = [] }
    return element
  }

  public mutating func removeAll(where isUnwanted: (Element) -> Bool) {
    elements.removeAll { element in element.map(isUnwanted) ?? true }
  }
}
