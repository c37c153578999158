import Threads

@testable import ImageStore

/// Makes the n-th operation of a file system fail, or all operations from the n-th on.
final class Faults: Sendable {
  enum Extent: CaseIterable {
    case once
    case fromThenOn
  }

  private struct State {
    var place = Int.max
    var code: Int32 = 0
    var extent = Extent.once
    var kind: FileSystem.Operation?
    var seen = 0
  }

  private let state = Locked(State())

  var fileSystem: FileSystem {
    FileSystem { [state] operation in
      state.withLock { state in
        if let kind = state.kind, kind != operation { return nil }
        state.seen += 1
        let isChosen = state.extent == .once ? state.seen == state.place : state.seen >= state.place
        return isChosen ? state.code : nil
      }
    }
  }

  func fail(at place: Int, with code: Int32, _ extent: Extent = .once, only kind: FileSystem.Operation? = nil) {
    state.withLock { $0 = State(place: place, code: code, extent: extent, kind: kind) }
  }

  /// Ends the failures. Returns the number of operations since `fail`.
  func stop() -> Int {
    state.withLock { state in
      defer { state = State() }
      return state.seen
    }
  }
}
