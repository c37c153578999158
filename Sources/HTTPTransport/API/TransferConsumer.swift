/// What a transfer delivers to.
///
/// All calls for one transport come on its thread, one at a time, for one transfer in the order head, bytes, finished.
/// They hold up every other transfer, so they return soon. They may call `start`, `cancel` and `resume`, which take
/// effect after they have returned.
public protocol TransferConsumer: AnyObject, Sendable {
  /// The final response has begun: neither informational ones nor redirects that are followed come here. It is called
  /// once at most.
  func received(head: ResponseHead) -> Verdict

  /// The next part of the body, with content encodings undone; valid during the call only. At most 64 kB.
  func received(bytes: UnsafeRawBufferPointer) -> Verdict

  /// The transfer has ended. It is called exactly once, and nothing is called after it.
  func finished(_ outcome: Result<TransferSummary, TransferError>)
}

/// What a consumer says to what it was given.
public enum Verdict: Sendable, Hashable {
  /// Go on.
  case proceed
  /// What was given is taken, but no bytes more until `Transport.resume`.
  ///
  /// A transfer with nothing left to deliver may finish while paused. A resume that comes while the consumer is still
  /// about to return this is not lost; one that comes before the consumer was called has nothing to lift.
  case pause
  /// The rest is of no interest. It is read and dropped when it is short (64 kB), so that the connection can be used
  /// again, else the connection is given up. Either way the outcome is a success.
  case discard
  /// Stop; the outcome is the error `aborted`.
  case abort
}
