internal import Loading
internal import Platform

enum WallClock {
  /// The Unix time in milliseconds.
  static var milliseconds: Int64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Int64(now.tv_sec) * 1000 + Int64(now.tv_nsec) / 1_000_000
  }

  /// The Unix time in seconds of an instant of the monotonic clock.
  static func seconds(at instant: Instant) -> Int {
    LoadingActor.unixTime + Int(LoadingActor.now.duration(to: instant).components.seconds)
  }

  /// The Unix time in seconds, to the microsecond.
  static var now: Double {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec / 1000) / 1_000_000
  }
}
