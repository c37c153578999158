internal import Platform

/// The name server to ask first: the first one of resolv.conf(5), or one that has answered in its stead. Pure.
struct ServerChoice {
  /// Time between two attempts at the first server while another one is preferred.
  static let pause = Duration.seconds(30)

  private var preferred = 0
  private var triedAt: Instant

  init(now: Instant) { triedAt = now }

  /// The number of the server for a query's first attempt, counted from zero. Further attempts go to the following
  /// servers.
  mutating func first(now: Instant) -> Int {
    guard preferred != 0, triedAt.duration(to: now) >= Self.pause else { return preferred }
    // One query is enough to test the first server.
    triedAt = now
    return 0
  }

  mutating func answered(by server: Int, now: Instant) {
    guard server != preferred else { return }
    (preferred, triedAt) = (server, now)
  }
}
