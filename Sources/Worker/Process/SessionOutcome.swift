/// The facts that determine the exit status of a session.
struct SessionOutcome {
  /// Whether a request ended in an error.
  var hasFailures = false
  var wasCancelledBySignal = false
  /// Whether the input ended because it could not be read.
  var hasLostInput = false

  /// - Parameter reportingFailures: the option `--exit-status`.
  func exitStatus(reportingFailures: Bool) -> Int32 {
    if hasLostInput { return ExitStatus.inputOrOutput }
    return reportingFailures && (hasFailures || wasCancelledBySignal) ? ExitStatus.failures : 0
  }
}
