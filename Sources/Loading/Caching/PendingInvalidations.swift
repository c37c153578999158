internal import HTTPTypes
internal import ImageStore
internal import Text

/// A clear, as applied to candidates and to jobs under way.
struct Clear: Sendable {
  let filter: ClearFilter
  let tiers: Loader.Tiers
  /// Unix seconds.
  let time: Int

  func matches(_ response: StoredResponse) -> Bool { filter.matches(response, now: time) }

  /// Whether the clear removes the candidate from every tier.
  func takes(_ candidate: Candidate) -> Bool {
    guard matches(candidate.response) else { return false }
    return switch candidate.location {
    case .memory: tiers == .all || tiers == .memory && !candidate.response.isOnDisk
    case .disk: tiers != .memory
    case .readOnly: false
    case .scratch: tiers == .all
    }
  }
}

extension Candidate {
  mutating func mark(_ clear: Clear) { if clear.takes(self) { retention = .cleared } }
}

/// The clears that the disk thread has not completed yet. A pure value.
///
/// The disk thread is FIFO. Results of work queued before a clear arrive before the clear completes; results of work
/// queued after it arrive later. So a pending clear applies to every result that arrives before its completion, and a
/// completed one to none.
struct PendingInvalidations {
  private var clears: [Clear] = []
  /// The number of completed clears at the front of the array.
  private var overCount = 0
  /// The number of clears begun so far.
  private(set) var count = 0

  private var pending: ArraySlice<Clear> { clears[overCount...] }

  var isEmpty: Bool { pending.isEmpty }

  mutating func begin(_ clear: Clear) {
    count += 1
    clears.append(clear)
  }

  /// Completes the oldest pending clear.
  mutating func endFirst() {
    overCount += 1
    guard 2 * overCount >= clears.count else { return }
    clears.removeFirst(overCount)
    overCount = 0
  }

  /// Whether a pending clear removes the response from any tier.
  func reach(_ response: StoredResponse) -> Bool { pending.contains { $0.matches(response) } }

  /// Marks a candidate as cleared if a pending clear removes it from every tier.
  func mark(_ candidate: inout Candidate) { for clear in pending { candidate.mark(clear) } }

  /// Marks all candidates that a pending clear removes from every tier.
  ///
  /// - Returns: the number of the first clear that matches any candidate: the value of `count` right after that clear.
  func mark(_ candidates: inout [Candidate]) -> Int? {
    for index in candidates.indices { mark(&candidates[index]) }
    return pending.firstIndex { clear in candidates.contains { clear.matches($0.response) } }
      .map { count - clears.count + $0 + 1 }
  }
}

extension ClearFilter {
  /// Whether the response to the request will match the filter.
  func matches(_ request: LoadRequest) -> Bool {
    switch self {
    case .all: true
    case .url(let url, let key): request.url.hasSameBytes(as: url) || request.key.hasSameBytes(as: key)
    case .key(let key): request.key.hasSameBytes(as: key)
    case .prefix(let prefix): request.key.utf8.starts(with: prefix.utf8)
    case .host(let host, let port): request.origin.host == host && (port == nil || request.origin.port == port)
    case .olderThan, .expired: false
    case .every(let filters): filters.allSatisfy { $0.matches(request) }
    }
  }
}
