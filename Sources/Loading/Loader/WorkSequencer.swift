public import Platform

/// A source of work for the loading thread: the host, or one callback that the loading thread has passed to another
/// thread.
///
/// The loading thread numbers the sources in the order of its decisions. In a replay of a recorded session, equal
/// numbers therefore stand for the same callbacks.
public struct WorkSource: Sendable, Hashable {
  public let number: UInt64

  /// The host: its lines, the end of its input, signals, and output that is read again.
  public static let host = WorkSource(recorded: 0)

  /// The number of the newest source.
  @LoadingActor public private(set) static var last: UInt64 = 0

  /// A new source.
  @LoadingActor
  public init() {
    Self.last += 1
    number = Self.last
  }

  /// The source with a recorded number.
  public init(recorded number: UInt64) { self.number = number }
}

/// Decides when work of other threads runs on the loading thread, and at what time. Only a recorded and a replayed
/// session have one.
///
/// All decisions of a session are made on the loading thread. They are determined by the order of its work, by the time
/// that the work sees, and by the few values that it reads from other threads.
public protocol WorkSequencer: Sendable {
  /// Runs the work on the loading thread, work of the same source in the order of the calls. May be called on any
  /// thread.
  func run(for source: WorkSource, _ work: @escaping @LoadingActor @Sendable () -> Void)

  /// The time that the session sees. It does not change during one piece of work.
  var now: Instant { get }

  /// The Unix time in seconds that the session sees, and the one that its disk thread sees.
  var unixTime: Int { get }
  var unixTimeOfDisk: Int { get }

  /// Returns the value that the session must see instead of one that depends on the progress of another thread. Called
  /// on the loading thread.
  func observed(_ value: Bool) -> Bool

  /// Returns the work for the disk thread so that it sees the time of the present call. Called on the loading thread.
  func dated(_ work: @escaping @Sendable () -> Void) -> @Sendable () -> Void
}

extension LoadingActor {
  /// Unsafe: set at most once, before the first work is posted, and only read after that.
  nonisolated(unsafe) public static var sequencer: (any WorkSequencer)?

  /// The time that decisions are based on, also those about a transfer on the transport's thread.
  public static var now: Instant { sequencer?.now ?? .now }

  /// The same as Unix time, in seconds.
  public static var unixTime: Int { sequencer?.unixTime ?? time(nil) }

  /// Returns a value that depends on the progress of another thread, or in a replay the value that was recorded.
  public static func observed(_ value: Bool) -> Bool { sequencer?.observed(value) ?? value }
}
