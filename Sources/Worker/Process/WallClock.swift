internal import Platform

enum WallClock {
  /// The Unix time in seconds of an instant of the monotonic clock.
  static func seconds(at instant: ContinuousClock.Instant) -> Int {
    time(nil) + Int(ContinuousClock.now.duration(to: instant).components.seconds)
  }

  /// The Unix time in seconds, to the microsecond.
  static var now: Double {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec / 1000) / 1_000_000
  }
}
