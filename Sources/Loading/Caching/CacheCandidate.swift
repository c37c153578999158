internal import ImageStore

/// A stored response that may serve a load, with its bytes if the memory tier has them.
struct Candidate: Sendable {
  var response: StoredResponse
  var bytes: [UInt8]?
  var location: Location
  var retention = Retention.allowed

  /// Whether neither the response nor anything decoded from it may be cached.
  var isTransient: Bool { retention != .allowed }

  enum Retention: Sendable, Hashable {
    case allowed
    /// The request or the response forbids it.
    case forbidden
    /// The response has been cleared since it was found.
    case cleared
  }

  enum Location: Sendable, Equatable {
    case memory
    case disk
    /// A read-only directory, by its index.
    case readOnly(Int)
    /// A scratch file, by its path.
    case scratch(String)
  }

  /// Merges the results of two lookups: each response once, without variants of originals that have been replaced.
  static func merging(_ known: [Candidate], _ found: [Candidate]) -> [Candidate] {
    let ids = Set(known.map(\.response.id))
    return current(known + found.filter { !ids.contains($0.response.id) })
  }

  /// All candidates except variants of originals that have been replaced.
  static func current(_ all: [Candidate]) -> [Candidate] {
    guard all.contains(where: { !$0.response.variant.isEmpty }) else { return all }
    return all.filter { candidate in
      candidate.response.variant.isEmpty
        || all.allSatisfy { other in
          !other.response.variant.isEmpty || other.response.varyKey != candidate.response.varyKey
            || other.response.content.digest == candidate.response.originalDigest
        }
    }
  }
}
