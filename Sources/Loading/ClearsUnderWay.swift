internal import ImageStore

/// The clears that the disk's thread has not come to yet.
///
/// What was asked of that thread before a clear comes back before the clear's turn there is over, and what is asked of it
/// after the clear comes back later. So of all that comes back, what falls under the filter of one of these is what it has
/// cleared, and nothing else is. A pure value.
struct ClearsUnderWay {
  private struct Clear {
    var filter: ClearFilter
    /// Unix seconds.
    var time: Int
  }

  private var clears: [Clear] = []
  /// How many of them are over.
  private var overCount = 0
  /// How many clears there have been.
  private(set) var count = 0

  var isEmpty: Bool { clears.isEmpty }

  mutating func begin(_ filter: ClearFilter, at time: Int) {
    count += 1
    clears.append(Clear(filter: filter, time: time))
  }

  /// The first of them is over.
  mutating func endFirst() {
    overCount += 1
    guard 2 * overCount >= clears.count else { return }
    clears.removeFirst(overCount)
    overCount = 0
  }

  func reach(_ response: StoredResponse) -> Bool { first(reaching: response) != nil }

  /// Marks those that have been cleared.
  ///
  /// - Returns: the number of the first clear that has reached any of them, which is what `count` was right after it.
  func mark(_ candidates: inout [Candidate]) -> Int? {
    var first: Int?
    for place in candidates.indices {
      guard let number = self.first(reaching: candidates[place].response) else { continue }
      candidates[place].keeping = .cleared
      first = min(first ?? number, number)
    }
    return first
  }

  private func first(reaching response: StoredResponse) -> Int? {
    clears[overCount...].firstIndex { $0.filter.matches(response, now: $0.time) }.map { count - clears.count + $0 + 1 }
  }
}
