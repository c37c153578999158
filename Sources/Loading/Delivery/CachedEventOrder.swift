/// The order of a load's `cached` event and its answer. A pure value.
///
/// A load with `refresh` shows the cached image before its answer. The cached image may have to be read or decoded
/// first, and the answer may be ready earlier; the answer then waits.
struct CachedEventOrder {
  typealias Answer = Result<LoadedImage, LoadError>

  private enum State {
    /// The event is being prepared.
    case pending
    /// The event is being prepared, and the answer waits for it.
    case awaited(Answer)
    /// The event has been sent or dropped.
    case over
  }

  /// The loads that have found a cached image to show and have not ended.
  private var states: [LoadID: State] = [:]

  var isEmpty: Bool { states.isEmpty }

  /// Begins the event of a load, once.
  ///
  /// - Parameter isDropped: whether the load gets no event.
  /// - Returns: whether the event must be prepared.
  mutating func begin(_ load: LoadID, isDropped: Bool) -> Bool {
    guard states[load] == nil else { return false }
    states[load] = isDropped ? .over : .pending
    return !isDropped
  }

  /// Holds an answer back until the event is over.
  ///
  /// - Returns: false if no event is pending, so that the answer can be given.
  mutating func hold(_ answer: Answer, of load: LoadID) -> Bool {
    switch states[load] {
    case .pending:
      states[load] = .awaited(answer)
      return true
    case .awaited:
      assertionFailure("a load must be answered once")
      return true
    case .over, nil: return false
    }
  }

  /// Whether the answer of the load waits for the event.
  func holdsAnswer(of load: LoadID) -> Bool {
    if case .awaited = states[load] { true } else { false }
  }

  /// Ends the wait for the event, if there is one.
  ///
  /// - Returns: the answer that waited.
  mutating func end(_ load: LoadID) -> Answer? {
    guard let state = states[load] else { return nil }
    states[load] = .over
    if case .awaited(let answer) = state { return answer }
    return nil
  }

  /// Removes a load that has ended.
  mutating func remove(_ load: LoadID) { states[load] = nil }
}
