internal import Platform

/// The way to find the addresses of host names.
public enum NameResolver: String, Sendable, Hashable, CaseIterable {
  /// c-ares on the transport's thread: asks the name servers of resolv.conf(5) and reads hosts(5).
  case cAres = "c-ares"
  /// getaddrinfo(3) on curl's threads, so all sources in nsswitch.conf(5).
  case system
}

/// The result of a look-up.
public struct NameResolution: Sendable, Hashable {
  public enum Outcome: Sendable, Hashable {
    /// The name has an address, or needs none here since a proxy or curl itself finds it.
    case resolved
    case noSuchName
    /// The name servers did not answer, so whether the name exists is unknown.
    case unanswered
  }

  public var outcome: Outcome
  /// Duration of the look-up; zero if the answer was known.
  public var duration: Duration

  public init(_ outcome: Outcome, duration: Duration = .zero) {
    self.outcome = outcome
    self.duration = duration
  }
}

/// Counters and the state of the resolver. All members except `kind` are about c-ares only.
public struct ResolverStatistics: Sendable, Hashable {
  public var kind: NameResolver
  /// Number of names whose answers are stored.
  public var names = 0
  /// Number of names that must be looked up and have not been asked yet.
  public var waiting = 0
  /// Number of queries in flight, and its current limit.
  public var inFlight = 0
  public var window = 0
  /// Totals since the start: names that were looked up, queries that were sent for them, and names without an answer.
  public var lookUps = 0
  public var queries = 0
  public var unanswered = 0

  public init(kind: NameResolver) { self.kind = kind }
}

/// The name lookup of the system, for what curl does not tell about its own.
enum SystemNames {
  /// Finds out whether it is certain that a name has no address. Calls getaddrinfo(3), which may take long, on a thread
  /// of its own.
  ///
  /// - Parameter completion: called once, on any thread.
  static func findAbsence(of name: String, _ completion: @escaping @Sendable (Bool) -> Void) {
    let thread = PosixThread(name: "name lookup") {
      var addresses: UnsafeMutablePointer<addrinfo>?
      let status = getaddrinfo(name, nil, nil, &addresses)
      if let addresses { freeaddrinfo(addresses) }
      completion(isNoAddress(status))
    }
    if let thread { thread.detach() } else { completion(false) }
  }
}
