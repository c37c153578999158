/// A queue: first in, first out.
struct FIFO<Element> {
  private var elements: [Element?] = []
  private var head = 0

  var first: Element? { head < elements.count ? elements[head] : nil }

  mutating func append(_ element: Element) { elements.append(element) }

  mutating func popFirst() -> Element? {
    guard head < elements.count else { return nil }
    defer {
      elements[head] = nil
      head += 1
      if head > 32, 2 * head > elements.count {
        elements.removeFirst(head)
        head = 0
      }
    }
    return elements[head]
  }
}
