/// Receives the response of a transfer.
///
/// All calls of one transport are made on its thread, one at a time; for one transfer in the order redirects, head,
/// bytes, finished. A call blocks every other transfer, so it must return soon. It may call `start`, `cancel` and
/// `resume`, which take effect after it has returned.
public protocol TransferConsumer: AnyObject, Sendable {
  /// Receives the target of a redirect before anything is sent to it. `pause` holds the transfer until
  /// `Transport.resume`; `discard` and `abort` end it with `aborted`. Without an implementation, each redirect is
  /// followed.
  ///
  /// - Parameter url: absolute, without fragment and user information.
  func redirected(to url: String) -> Verdict

  /// Receives the head of the final response; called at most once. Informational responses and redirects that are
  /// followed are not delivered.
  func received(head: ResponseHead) -> Verdict

  /// Receives the next part of the body, content-decoded, at most 64 kB. The buffer is valid during the call only.
  func received(bytes: UnsafeRawBufferPointer) -> Verdict

  /// Receives the outcome. It is called exactly once, and no other call follows.
  func finished(_ outcome: Result<TransferSummary, TransferError>)
}

extension TransferConsumer {
  public func redirected(to url: String) -> Verdict { .proceed }
}

/// The answer of a consumer to a head or to bytes.
public enum Verdict: Sendable, Hashable {
  /// Continue.
  case proceed
  /// Accept these bytes, but deliver no more until `Transport.resume`.
  ///
  /// A transfer with nothing left to deliver may finish while paused. A resume that arrives while the consumer is about
  /// to return this verdict takes effect; one that arrives before the consumer was called has none.
  case pause
  /// Drop the rest of the body. A rest of up to 64 kB is read, so that the connection can be reused; otherwise the
  /// connection is closed. In both cases the transfer succeeds.
  case discard
  /// Stop. The transfer fails with `aborted`.
  case abort
}
