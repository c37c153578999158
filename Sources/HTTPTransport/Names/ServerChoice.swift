/// Which name server is asked first: the first one of resolv.conf(5), or the one that has answered in its stead. Pure.
struct ServerChoice {
  /// The time between two attempts at the first server while another one is preferred.
  static let pause = Duration.seconds(30)

  private var preferred = 0
  private var triedAt: ContinuousClock.Instant

  init(now: ContinuousClock.Instant) {
    triedAt = now
  }

  /// The number of the server for a query's first attempt, counted from zero. The others come after it in their order.
  mutating func first(now: ContinuousClock.Instant) -> Int {
    guard preferred != 0, triedAt.duration(to: now) >= Self.pause else { return preferred }
    // One query will tell.
    triedAt = now
    return 0
  }

  mutating func answered(by server: Int, now: ContinuousClock.Instant) {
    guard server != preferred else { return }
    (preferred, triedAt) = (server, now)
  }
}
