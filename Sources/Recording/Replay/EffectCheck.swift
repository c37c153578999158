internal import LineRPC

/// The check of the effects of one cause, in their order. A pure value.
struct EffectCheck {
  let group: JournalGroup
  private var next = 0
  private var nextObserved = 0

  init(_ group: JournalGroup) { self.group = group }

  /// The next value that the session read from another thread. If nothing unusual was observed, none was recorded.
  mutating func observed() -> Bool {
    guard nextObserved < group.observed.count else { return false }
    defer { nextObserved += 1 }
    return group.observed[nextObserved]
  }

  enum Outcome {
    case same
    case different(Difference)
    /// The recorded cause has no further effects.
    case unrecorded(Difference)
  }

  /// Compares an effect of the replay, in its sanitized form, with the next recorded one.
  mutating func compare(_ replayed: JSON, _ mask: inout AnswerMask) -> Outcome {
    guard next < group.effects.count else { return .unrecorded(.added(replayed, after: group.line + next)) }
    let (line, recorded) = group.effects[next]
    next += 1
    let (shownRecorded, shownReplayed) = mask.hide(in: recorded, replayed)
    guard let path = EffectComparison.difference(shownRecorded, shownReplayed) else { return .same }
    return .different(.changed(recorded, replayed, at: path, line: line))
  }

  /// The difference if a recorded effect is missing after the cause.
  var missing: Difference? {
    guard next < group.effects.count else { return nil }
    let (line, recorded) = group.effects[next]
    return .missing(recorded, line: line)
  }
}
