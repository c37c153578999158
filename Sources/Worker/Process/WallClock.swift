internal import Loading

enum WallClock {
  /// The Unix time in seconds of an instant of the monotonic clock.
  static func seconds(at instant: ContinuousClock.Instant) -> Int {
    LoadingActor.unixTime + Int(LoadingActor.now.duration(to: instant).components.seconds)
  }
}
