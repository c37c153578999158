public import Threads

/// The actor of the queue, the memory tier and the session. It is a single thread, so that input lines take effect in
/// the order in which they were sent, and a memory hit is answered without a thread hop.
///
/// Nothing here blocks. The disk and the network have threads of their own and answer through `LoadingActor.run`.
@globalActor
public actor LoadingActor {
  public static let shared = LoadingActor()

  public static let executor = ThreadExecutor(name: "loading")

  public nonisolated var unownedExecutor: UnownedSerialExecutor { Self.executor.asUnownedSerialExecutor() }

  /// Enqueues `work` on the actor. Unlike a `Task`, it preserves the order of submission.
  public static func run(_ work: @escaping @LoadingActor @Sendable () -> Void) {
    executor.run { assumeIsolated(work) }
  }

  /// Runs `work` at once. Traps if the caller is not on the actor's thread.
  public static func assumeIsolated<Result: Sendable>(_ work: @LoadingActor () -> Result) -> Result {
    // The cast only drops the isolation that the check below proves (as `MainActor.assumeIsolated` does).
    executor.checkIsolated()
    return withoutActuallyEscaping(work) { work in
      unsafeBitCast(work, to: (() -> Result).self)()
    }
  }
}
