internal import Platform

enum WallClock {
  /// The Unix time in seconds of an instant of the monotonic clock.
  static func seconds(at instant: ContinuousClock.Instant) -> Int {
    time(nil) + Int(ContinuousClock.now.duration(to: instant).components.seconds)
  }
}
