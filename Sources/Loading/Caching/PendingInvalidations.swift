internal import ImageStore

/// A clear, as far as it concerns what is under way.
struct Clear: Sendable {
  let filter: ClearFilter
  let tiers: Loader.Tiers
  /// Unix seconds.
  let time: Int

  func matches(_ response: StoredResponse) -> Bool { filter.matches(response, now: time) }

  /// Whether nothing of the candidate is left in any tier.
  func takes(_ candidate: Candidate) -> Bool {
    guard matches(candidate.response) else { return false }
    return switch candidate.place {
    case .memory: tiers == .all || tiers == .memory && !candidate.response.isOnDisk
    case .disk: tiers != .memory
    case .readOnly: false
    case .scratch: tiers == .all
    }
  }
}

extension Candidate {
  mutating func mark(_ clear: Clear) { if clear.takes(self) { keeping = .cleared } }
}

/// The clears that the disk's thread has not come to yet.
///
/// What was asked of that thread before a clear comes back before the clear's turn there is over, and what is asked of
/// it after the clear comes back later. Hence a clear that is under way applies to everything that comes back before it
/// ends, and an ended one to nothing. A pure value.
struct PendingInvalidations {
  private var pendingInvalidations: [Clear] = []
  /// How many of them are over.
  private var overCount = 0
  /// How many clears there have been.
  private(set) var count = 0

  private var pending: ArraySlice<Clear> { pendingInvalidations[overCount...] }

  var isEmpty: Bool { pending.isEmpty }

  mutating func begin(_ clear: Clear) {
    count += 1
    pendingInvalidations.append(clear)
  }

  /// The first of them is over.
  mutating func endFirst() {
    overCount += 1
    guard 2 * overCount >= pendingInvalidations.count else { return }
    pendingInvalidations.removeFirst(overCount)
    overCount = 0
  }

  /// Whether some tier has lost the response.
  func reach(_ response: StoredResponse) -> Bool { pending.contains { $0.matches(response) } }

  /// Marks a candidate of which nothing is left.
  func mark(_ candidate: inout Candidate) { for clear in pending { candidate.mark(clear) } }

  /// Marks all those.
  ///
  /// - Returns: the number of the first clear that has reached any candidate, which is what `count` was right after it.
  func mark(_ candidates: inout [Candidate]) -> Int? {
    for place in candidates.indices { mark(&candidates[place]) }
    return pending.firstIndex { clear in candidates.contains { clear.matches($0.response) } }
      .map { count - pendingInvalidations.count + $0 + 1 }
  }
}
