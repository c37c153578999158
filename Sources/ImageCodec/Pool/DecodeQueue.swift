/// A priority queue of decodes: highest priority first, then first in, first out.
///
/// The queue keeps a pixel budget: the running decodes together have at most that many pixels. A decode that is larger
/// runs alone, and a small excess is always allowed. The first decode waits until it fits and nothing overtakes it, so
/// that small decodes do not starve a large one.
struct DecodeQueue {
  private struct Waiting {
    var priority: Int
    var pixels: Int
  }

  /// An entry of the heap. It is stale if the ticket no longer waits or has another priority.
  private struct Place: Comparable {
    let priority: Int
    let ticket: DecodeTicket

    static func < (left: Place, right: Place) -> Bool {
      (left.priority, right.ticket.number) > (right.priority, left.ticket.number)
    }
  }

  var budget: Int
  private var waiting: [DecodeTicket: Waiting] = [:]
  private var running: [DecodeTicket: Int] = [:]
  private var heap: [Place] = []
  private(set) var runningPixels = 0

  init(budget: Int) { self.budget = budget }

  var waitingCount: Int { waiting.count }
  /// The number of heap entries, including stale ones.
  var placeCount: Int { heap.count }
  var waitingTickets: [DecodeTicket] { Array(waiting.keys) }

  mutating func add(_ ticket: DecodeTicket, priority: Int, pixels: Int) {
    // Limited, so that no sum overflows.
    waiting[ticket] = Waiting(priority: priority, pixels: min(pixels, 1 << 48))
    push(Place(priority: priority, ticket: ticket))
  }

  /// Has no effect on a ticket that does not wait.
  mutating func reprioritize(_ ticket: DecodeTicket, to priority: Int) {
    guard let entry = waiting[ticket], entry.priority != priority else { return }
    waiting[ticket]?.priority = priority
    push(Place(priority: priority, ticket: ticket))
    clearOut()
  }

  /// Removes a waiting ticket. False if it does not wait.
  mutating func remove(_ ticket: DecodeTicket) -> Bool {
    guard waiting.removeValue(forKey: ticket) != nil else { return false }
    clearOut()
    return true
  }

  /// Stale entries are removed when they reach the top; if most entries are stale, all stale ones are removed at once.
  private mutating func clearOut() {
    guard heap.count > 64, heap.count > 4 * waiting.count else { return }
    heap = waiting.map { Place(priority: $0.value.priority, ticket: $0.key) }.sorted()
  }

  /// Removes the next ticket, if it fits. It counts as running from now until `finish`.
  mutating func dequeue() -> DecodeTicket? {
    guard let ticket = nextThatFits() else { return nil }
    let pixels = waiting.removeValue(forKey: ticket)?.pixels ?? 0
    pop()
    running[ticket] = pixels
    runningPixels += pixels
    return ticket
  }

  /// Returns the ticket that `dequeue` would remove.
  mutating func nextThatFits() -> DecodeTicket? {
    while let first = heap.first {
      guard let entry = waiting[first.ticket], entry.priority == first.priority else {
        pop()
        continue
      }
      let fits = running.isEmpty || entry.pixels <= max(budget - runningPixels, budget / 100)
      return fits ? first.ticket : nil
    }
    return nil
  }

  mutating func finish(_ ticket: DecodeTicket) {
    guard let pixels = running.removeValue(forKey: ticket) else { return }
    runningPixels -= pixels
  }

  // MARK: Binary heap, smallest entry first

  private mutating func push(_ place: Place) {
    heap.append(place)
    var index = heap.count - 1
    while index > 0, heap[index] < heap[(index - 1) / 2] {
      heap.swapAt(index, (index - 1) / 2)
      index = (index - 1) / 2
    }
  }

  private mutating func pop() {
    heap.swapAt(0, heap.count - 1)
    heap.removeLast()
    var index = 0
    while true {
      let children = [2 * index + 1, 2 * index + 2].filter { $0 < heap.count }
      guard let least = children.min(by: { heap[$0] < heap[$1] }), heap[least] < heap[index] else { return }
      heap.swapAt(index, least)
      index = least
    }
  }
}
