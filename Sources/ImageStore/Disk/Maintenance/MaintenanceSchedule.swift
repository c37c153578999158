internal import Platform

/// The deferred work of the disk tier and its due times.
struct MaintenanceSchedule {
  /// How long uses are batched before they are flushed, in seconds.
  static let flushInterval = 2
  /// How long rows are batched before a commit if there are no peers.
  static let commitInterval = Duration.milliseconds(500)
  /// The interval between surveys of the peers, in seconds.
  static let surveyInterval = 2
  /// The survey interval of an idle worker, in seconds.
  static let idleSurveyInterval = 30

  var commitBy: Instant?
  var flushBy: Instant?
  var surveyAt = Int.distantPast
  var sweepWanted = false
  /// Whether this worker may have lost rows of existing files.
  var hasLeftovers = false
  /// Whether to check for times in the future.
  var clockCheckWanted = false
  /// In Unix seconds, like the following properties.
  var sweepAt: Int?
  /// When the first scheduled deletion is due.
  var nextDue: Int?
  var trimAt: Int?

  /// Makes the next survey start a sweep for files whose rows may be lost.
  mutating func requestSweep() {
    hasLeftovers = true
    sweepWanted = true
  }

  mutating func recordWrite() { if commitBy == nil { commitBy = .now + Self.commitInterval } }

  mutating func recordUse() { if flushBy == nil { flushBy = .now + .seconds(Self.flushInterval) } }
}

extension Int {
  static var distantPast: Int { .min / 2 }
}
