import Threads

/// The maximum wait of a test for an event. It does not measure speed: only a test that would hang reaches it.
let patience = Duration.seconds(60)

/// The error of a wait that timed out, with the last observed value.
struct NeverHappened: Error, CustomStringConvertible {
  let what: String
  let seen: String

  var description: String { "waited in vain for \(what); seen so far:\n\(seen)" }
}

/// A value that threads change and for whose states tests wait.
final class Watched<Value: Sendable>: Sendable {
  private struct State {
    var value: Value
    var waiters: [Int: @Sendable (Value) -> Bool] = [:]
    var nextWaiter = 0
  }

  private let state: Locked<State>

  init(_ value: Value) {
    state = Locked(State(value: value))
  }

  var value: Value { state.withLock { $0.value } }

  /// Changes the value, then resumes every waiter whose condition is met.
  @discardableResult
  func change<Result>(_ body: (inout Value) -> Result) -> Result {
    state.withLock { state in
      let result = body(&state.value)
      let value = state.value
      state.waiters = state.waiters.filter { !$0.value(value) }
      return result
    }
  }

  /// Waits until `condition` returns a value. It runs under the lock and must be quick.
  ///
  /// - Throws: `NeverHappened` after the maximum wait.
  func until<Result: Sendable>(
    _ what: String, _ condition: @escaping @Sendable (Value) -> Result?
  ) async throws -> Result {
    let outcome = Outcome<Result>()
    let waiter = state.withLock { state -> Int? in
      if let result = condition(state.value) {
        outcome.give(result)
        return nil
      }
      state.nextWaiter += 1
      state.waiters[state.nextWaiter] = { value in
        guard let result = condition(value) else { return false }
        outcome.give(result)
        return true
      }
      return state.nextWaiter
    }
    let watchdog = waiter.map { waiter in
      Task {
        try await Task.sleep(for: patience)
        state.withLock { _ = $0.waiters.removeValue(forKey: waiter) }
        outcome.give(nil)
      }
    }
    defer { watchdog?.cancel() }
    guard let result = await outcome.value else { throw NeverHappened(what: what, seen: "\(value)") }
    return result
  }
}

/// A result that is set once and awaited once. Later results are dropped.
private final class Outcome<Result: Sendable>: Sendable {
  private enum State {
    case open
    case awaited(CheckedContinuation<Result?, Never>)
    case given(Result?)
  }

  private let state = Locked<State>(.open)

  func give(_ result: Result?) {
    let continuation = state.withLock { state -> CheckedContinuation<Result?, Never>? in
      switch state {
      case .open:
        state = .given(result)
        return nil
      case .awaited(let continuation):
        state = .given(result)
        return continuation
      case .given:
        return nil
      }
    }
    continuation?.resume(returning: result)
  }

  var value: Result? {
    get async {
      await withCheckedContinuation { continuation in
        let given = state.withLock { state -> Result?? in
          if case .given(let result) = state { return .some(result) }
          state = .awaited(continuation)
          return .none
        }
        if let given { continuation.resume(returning: given) }
      }
    }
  }
}
