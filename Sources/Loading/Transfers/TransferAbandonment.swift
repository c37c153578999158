internal import HTTPTransport

/// Abandonment of transfers that no load needs any more. The bytes received so far are retained, so that a later load
/// can resume them (`TransferResumption.swift`).
extension Loader {
  /// Aborts the transfer. The job stays active until the connection is known to be closed.
  func abortTransfer(of job: JobID) {
    scheduler.detach(job)
    cancelTransfer(of: job)
  }

  /// Cancels the transfer. `ended` is called when the connection is closed, or with a response that came first.
  func cancelTransfer(of job: JobID) {
    if let transfer = jobs[job]?.transfer { transport.cancel(transfer) }
  }
}
