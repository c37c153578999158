/// The way in which the addresses of host names are found.
public enum NameResolver: String, Sendable, Hashable, CaseIterable {
  /// c-ares on the transport's thread: the name servers of resolv.conf(5) are asked, and hosts(5) is read.
  case cAres = "c-ares"
  /// getaddrinfo(3) on curl's threads, and so all that nsswitch.conf(5) names.
  case system
}

/// The result of a look-up.
public struct NameResolution: Sendable, Hashable {
  public enum Outcome: Sendable, Hashable {
    /// There is an address, or none is needed: a proxy or curl itself finds it.
    case resolved
    case noSuchName
    /// The name servers gave no answer, so that nothing is known of the name.
    case unanswered
  }

  public var outcome: Outcome
  /// How long it took; zero if the answer was known.
  public var duration: Duration

  public init(_ outcome: Outcome, duration: Duration = .zero) {
    self.outcome = outcome
    self.duration = duration
  }
}

/// Identifies a look-up; never used twice by one transport.
public struct LookUpID: Sendable, Hashable {
  let number: UInt64
}

/// Counters and the state of the resolver. All but `kind` is of c-ares only.
public struct ResolverStatistics: Sendable, Hashable {
  public var kind: NameResolver
  /// Names whose answers are kept.
  public var names = 0
  /// Names that are to be looked up, and have not been asked for yet.
  public var waiting = 0
  /// Queries in flight, and how many there may be.
  public var inFlight = 0
  public var window = 0
  /// Since the start: names that were looked up, queries that were sent for them, and names for which there was no
  /// answer.
  public var lookUps = 0
  public var queries = 0
  public var unanswered = 0

  public init(kind: NameResolver) {
    self.kind = kind
  }
}
