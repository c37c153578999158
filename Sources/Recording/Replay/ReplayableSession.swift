public import LineRPC
public import Loading
public import Platform

/// Receives what a session does: a recorder or a replayer.
public protocol SessionObserver: Sendable {
  /// Receives a line for the host, with its LF.
  @LoadingActor func sent(_ line: [UInt8])

  /// Receives the exit status. The session does nothing more.
  @LoadingActor func ended(status: Int32)
}

/// A session that can be replayed.
@LoadingActor
public protocol ReplayableSession: AnyObject {
  func receive(_ batch: [Incoming])
  func endOfInput(failed: Bool)
  func terminate()
  func collectFigures()
  func advance() -> Instant?
}

/// The functions that a replay calls on the loading thread.
public struct ReplayCallbacks: Sendable {
  /// Creates the session.
  public var makeSession: @LoadingActor @Sendable () -> any ReplayableSession
  /// Called before each cause. It may block.
  public var onCause: @Sendable () -> Void
  /// Called once, at the end of the recording or at the first difference.
  public var onEnd: @Sendable (Result<Void, Difference>) -> Void

  public init(
    makeSession: @escaping @LoadingActor @Sendable () -> any ReplayableSession,
    onCause: @escaping @Sendable () -> Void, onEnd: @escaping @Sendable (Result<Void, Difference>) -> Void
  ) {
    (self.makeSession, self.onCause, self.onEnd) = (makeSession, onCause, onEnd)
  }
}
