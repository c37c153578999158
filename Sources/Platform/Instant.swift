/// A point in time of the clock that neither changes of the wall clock nor sleep of the system affect.
///
/// It is `ContinuousClock.Instant` with a layout that the compiler knows. All types that contain the one of the
/// standard library are laid out at run time: copying one and reading a field take several times as long.
public struct Instant: InstantProtocol, Sendable {
  private let sinceBoot: Duration

  private init(sinceBoot: Duration) { self.sinceBoot = sinceBoot }

  public static var now: Instant {
    #if canImport(Darwin)
      let clock = CLOCK_MONOTONIC_RAW
    #else
      let clock = CLOCK_BOOTTIME
    #endif
    var time = timespec()
    clock_gettime(clock, &time)
    return Instant(
      sinceBoot: Duration(
        secondsComponent: Int64(time.tv_sec), attosecondsComponent: Int64(time.tv_nsec) * 1_000_000_000))
  }

  public func advanced(by duration: Duration) -> Instant { Instant(sinceBoot: sinceBoot + duration) }
  public func duration(to other: Instant) -> Duration { other.sinceBoot - sinceBoot }

  public static func + (instant: Instant, duration: Duration) -> Instant { instant.advanced(by: duration) }
  public static func - (instant: Instant, duration: Duration) -> Instant {
    Instant(sinceBoot: instant.sinceBoot - duration)
  }
  public static func - (end: Instant, start: Instant) -> Duration { start.duration(to: end) }
  public static func += (instant: inout Instant, duration: Duration) { instant = instant + duration }
  public static func < (one: Instant, other: Instant) -> Bool { one.sinceBoot < other.sinceBoot }
}

/// The clock of the calendar, which users and other machines set.
public enum WallClock {
  /// The Unix time in milliseconds.
  public static var milliseconds: Int64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
  }

  /// The Unix time in seconds of an instant of the monotonic clock.
  public static func seconds(at instant: Instant) -> Int {
    time(nil) + Int(Instant.now.duration(to: instant).components.seconds)
  }

  /// The Unix time in seconds, to the microsecond.
  public static var now: Double {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec / 1000) / 1_000_000
  }
}
