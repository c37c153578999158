/// What the disk tier has put off, and until when.
struct MaintenanceSchedule {
  /// How long uses gather before they are written, in seconds.
  static let flushInterval = 2
  /// How long rows gather when no other worker waits for the index.
  static let commitInterval = Duration.milliseconds(500)
  /// How often to look after other workers, in seconds.
  static let surveyInterval = 2
  /// The same of a worker that has nothing else to do.
  static let idleSurveyInterval = 30

  var commitBy: ContinuousClock.Instant?
  var flushBy: ContinuousClock.Instant?
  var surveyAt = Int.distantPast
  var sweepWanted = false
  /// Whether to look for times that lie ahead.
  var clockCheckWanted = false
  /// Unix seconds, as are the following.
  var sweepAt: Int?
  /// When the first doomed file is due.
  var nextDue: Int?
  var trimAt: Int?
  /// When the first partial file is too old.
  var partialsDue: Int?

  mutating func noteWrite() {
    if commitBy == nil { commitBy = .now + Self.commitInterval }
  }

  mutating func noteUse() {
    if flushBy == nil { flushBy = .now + .seconds(Self.flushInterval) }
  }
}

extension Int {
  static var distantPast: Int { .min / 2 }
}
