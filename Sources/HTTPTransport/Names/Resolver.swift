internal import HTTPTypes
internal import Platform
internal import Threads

/// Finds the addresses of host names: in the hosts file, in stored answers, or from name servers.
///
/// All waiters for a name share one look-up. It is confined to the transport's thread; all callbacks happen within
/// `lookUp`, `work` and `SocketPoll.reportReady`.
final class Resolver {
  enum Outcome: Hashable {
    /// In the order in which they must be tried; never empty.
    case addresses([IPAddress])
    case noSuchName
    case unanswered
  }

  typealias Completion = (Outcome) -> Void

  /// Identifies one waiter of a look-up.
  struct Ticket: Hashable {
    let name: String
    fileprivate let number: Int
  }

  private final class LookUp {
    let name: String
    var questions: NameQuestions
    let askedAt: Instant
    /// By the number of their ticket.
    var waiters: [Int: Completion] = [:]
    /// Whether its first queries have been made.
    var hasBegun = false

    init(_ name: String, _ questions: NameQuestions, askedAt: Instant) {
      self.name = name
      self.questions = questions
      self.askedAt = askedAt
    }
  }

  private static let maxAttempts = 3
  /// Time for which addresses of one type wait for those of the other (RFC 8305 section 3).
  private static let resolutionDelay = Duration.milliseconds(50)
  /// Shortest time between two checks of the queries in flight.
  private static let minPause = Duration.milliseconds(20)

  private let configuration: NameServerConfiguration
  private let clock: LoopClock
  private var servers: NameServers!
  private var knownNames: KnownNames
  private var window = QueryWindow()

  private var lookUps: [String: LookUp] = [:]
  /// Look-ups that have not begun, in the order of arrival.
  private var waiting = FIFO<LookUp>()
  /// The first attempts at queries of look-ups that have begun. They go ahead of `waiting`.
  private var pending = FIFO<(LookUp, NameQuery)>()
  /// Further attempts. They take turns with `waiting`, so that names without an answer do not delay others.
  private var repeated = FIFO<(LookUp, NameQuery)>()
  private var isTurnOfRepeated = false
  /// The look-ups of the queries in flight, by the query.
  private var inFlight: [ObjectIdentifier: LookUp] = [:]
  /// The attempts, and when each becomes quiet, in ascending order; some have ended.
  private var young = FIFO<(NameQuery, attempt: Int, until: Instant)>()
  private var endedQueries: [(NameQuery, NameQuery.End)] = []
  /// Look-ups with addresses of one type, and the time at which these suffice; in ascending order.
  private var halves = FIFO<(LookUp, due: Instant)>()
  private var lastNumber = 0

  private var heardAt = Instant.now
  /// Latest time for the next call of `work`; nil for never.
  private(set) var nextCheck: Instant?
  private var counts = ResolverStatistics(kind: .cAres)

  init(_ configuration: NameServerConfiguration, poll: SocketPoll, clock: LoopClock) {
    self.configuration = configuration
    self.clock = clock
    knownNames = KnownNames(hostsFile: configuration.hostsFile)
    servers = NameServers(configuration, poll: poll) { [unowned self] query, end in endedQueries.append((query, end)) }
  }

  var statistics: ResolverStatistics {
    var statistics = counts
    statistics.names = knownNames.cache.count
    statistics.waiting = lookUps.values.count { !$0.hasBegun }
    statistics.inFlight = window.inFlight
    statistics.window = window.size
    return statistics
  }

  // MARK: Asking

  /// The outcome that is known without asking a server; nil if none is.
  ///
  /// - Parameter name: a host whose `HostKind` is `name`.
  func known(_ name: String) -> Outcome? { knownNames.outcome(for: name, now: clock.now) }

  /// Looks up a name that has no known outcome.
  ///
  /// - Parameter completion: called once, after this call has returned, unless `unsubscribe` is called first.
  func lookUp(_ name: String, _ completion: @escaping Completion) -> Ticket {
    lastNumber += 1
    let lookUp = lookUps[name] ?? begin(name)
    lookUp.waiters[lastNumber] = completion
    return Ticket(name: name, number: lastNumber)
  }

  /// Removes a waiter. A look-up that has no waiter left and has not begun is dropped. Nothing happens if it has ended.
  func unsubscribe(_ ticket: Ticket) {
    guard let lookUp = lookUps[ticket.name] else { return }
    lookUp.waiters[ticket.number] = nil
    if lookUp.waiters.isEmpty, !lookUp.hasBegun { lookUps[ticket.name] = nil }
  }

  private func begin(_ name: String) -> LookUp {
    servers.reloadIfNeeded(now: clock.now)
    let questions = NameQuestions(
      candidates: servers.searchList.candidates(for: name), prefersIPv6: servers.prefersIPv6(now: clock.now))
    let lookUp = LookUp(name, questions, askedAt: clock.now)
    lookUps[name] = lookUp
    waiting.append(lookUp)
    counts.lookUps += 1
    return lookUp
  }

  // MARK: Queries

  /// Sends the queries that may be sent, and handles those that have ended.
  func work() {
    if let nextCheck, nextCheck <= clock.now { check() }
    repeat {
      while !endedQueries.isEmpty {
        let ended = endedQueries
        endedQueries = []
        for (query, end) in ended { self.ended(query, end) }
      }
      while !window.isFull, sendNext() {}
    } while !endedQueries.isEmpty
  }

  private func sendNext() -> Bool {
    if let (lookUp, query) = pending.popFirst() {
      send(query, of: lookUp)
      return true
    }
    isTurnOfRepeated.toggle()
    if isTurnOfRepeated, let (lookUp, query) = repeated.popFirst() {
      send(query, of: lookUp)
      return true
    }
    while let lookUp = waiting.popFirst() {
      // All its waiters are gone; a new look-up of the same name may exist.
      guard lookUps[lookUp.name] === lookUp else { continue }
      lookUp.hasBegun = true
      ask(lookUp.questions.begin(), of: lookUp)
      return true
    }
    guard let (lookUp, query) = repeated.popFirst() else { return false }
    send(query, of: lookUp)
    return true
  }

  private func ask(_ types: [RecordType], of lookUp: LookUp) {
    for type in types { pending.append((lookUp, NameQuery(lookUp.questions.name, type))) }
  }

  private func send(_ query: NameQuery, of lookUp: LookUp) {
    guard isNeeded(lookUp) else { return complete(query, .failed, of: lookUp) }
    query.server = query.attempts == 0 ? servers.choice.first(now: clock.now) : query.server + 1
    if inFlight.isEmpty { heardAt = clock.now }
    query.attempts += 1
    counts.queries += 1
    inFlight[ObjectIdentifier(query)] = lookUp
    window.sent()
    servers.ask(query, server: query.server)
    let quietAt = clock.now + configuration.quietAfter
    young.append((query, query.attempts, quietAt))
    let due = min(quietAt, clock.now + configuration.timeout)
    nextCheck = nextCheck.map { min($0, due) } ?? due
  }

  private func ended(_ query: NameQuery, _ end: NameQuery.End) {
    guard let lookUp = inFlight.removeValue(forKey: ObjectIdentifier(query)) else {
      return assertionFailure("a query must be in flight when it ends, and end once")
    }
    setQuiet(false, query)
    switch end {
    case .answered(let answer):
      heardAt = clock.now
      servers.choice.answered(by: query.server % max(1, servers.count), now: clock.now)
      window.answered(losses: query.losses)
      complete(query, answer, of: lookUp)
    case .serverFailed:
      heardAt = clock.now
      window.answered(losses: 0)
      // Another server may succeed. This one would answer the same again.
      retry(query, of: lookUp, maxAttempts: servers.count)
    case .refused, .lost:
      if case .refused = end { heardAt = clock.now }
      query.losses += window.lost() ? 1 : 0
      retry(query, of: lookUp, maxAttempts: max(Self.maxAttempts, servers.count))
    }
  }

  private func retry(_ query: NameQuery, of lookUp: LookUp, maxAttempts: Int) {
    if query.attempts < maxAttempts, isNeeded(lookUp), lookUp.questions.isWorthRepeating(query.type) {
      repeated.append((lookUp, query))
    } else {
      complete(query, .failed, of: lookUp)
    }
  }

  /// Handles the final answer to a query.
  private func complete(_ query: NameQuery, _ answer: NameQuestions.Answer, of lookUp: LookUp) {
    if answer == .failed { window.gaveUp(losses: query.losses) }
    switch lookUp.questions.answered(query.type, answer) {
    case .wait:
      guard lookUp.questions.availableAddresses != nil else { break }
      let due = clock.now + Self.resolutionDelay
      halves.append((lookUp, due))
      nextCheck = nextCheck.map { min($0, due) } ?? due
    case .ask(let types): ask(types, of: lookUp)
    case .resolved(let addresses, let timeToLive): conclude(lookUp, addresses, timeToLive: timeToLive)
    case .noSuchName:
      knownNames.cache.insert(.noSuchName, for: lookUp.name, now: clock.now)
      finish(lookUp, .noSuchName)
    case .unanswered: finish(lookUp, .unanswered)
    }
  }

  /// Stores addresses and ends the look-up. Addresses that arrive later are stored as well.
  private func conclude(_ lookUp: LookUp, _ addresses: [IPAddress], timeToLive: Duration) {
    knownNames.cache.insert(.addresses(addresses), for: lookUp.name, timeToLive: timeToLive, now: clock.now)
    finish(lookUp, .addresses(addresses))
  }

  private func setQuiet(_ isQuiet: Bool, _ query: NameQuery) {
    guard query.isQuiet != isQuiet else { return }
    query.isQuiet = isQuiet
    window.setQuiet(isQuiet)
  }

  private func isNeeded(_ lookUp: LookUp) -> Bool {
    lookUps[lookUp.name] === lookUp && !lookUp.waiters.isEmpty
  }

  private func finish(_ lookUp: LookUp, _ outcome: Outcome) {
    guard lookUps[lookUp.name] === lookUp else { return }
    lookUps[lookUp.name] = nil
    if outcome == .unanswered, !lookUp.waiters.isEmpty { counts.unanswered += 1 }
    for (_, completion) in lookUp.waiters.sorted(by: { $0.key < $1.key }) { completion(outcome) }
  }

  // MARK: Time

  private func check() {
    let now = clock.now
    if heardAt.duration(to: now) >= configuration.silenceTimeout {
      for lookUp in Array(lookUps.values) where lookUp.askedAt.duration(to: now) >= configuration.silenceTimeout {
        finish(lookUp, .unanswered)
      }
    }
    while let (query, attempt, until) = young.first, until <= now {
      _ = young.popFirst()
      if query.attempts == attempt, inFlight[ObjectIdentifier(query)] != nil { setQuiet(true, query) }
    }
    while let half = halves.first, half.due <= now {
      _ = halves.popFirst()
      if let result = half.0.questions.availableAddresses {
        conclude(half.0, result.addresses, timeToLive: result.timeToLive)
      }
    }
    nextCheck = servers.checkTimeouts().map { now + max(.milliseconds(Int64($0) + 1), Self.minPause) }
    if nextCheck == nil, !lookUps.isEmpty { nextCheck = now + configuration.timeout }
    let quietAt = young.first.map { max($0.until, now + Self.minPause) }
    for due in [halves.first?.due, quietAt].compactMap(\.self) { nextCheck = nextCheck.map { min($0, due) } ?? due }
  }
}

extension Resolver {
  /// The step before a hop can connect.
  enum Need: Hashable {
    /// None: curl or a proxy finds the address, or the host is one.
    case nothing
    case known(Outcome)
    /// Look up the name.
    case lookUp(String)
  }

  private static let loopback = [IPAddress("::1"), IPAddress("127.0.0.1")].compactMap { $0 }

  func need(for origin: Origin, under settings: ResolvedConfiguration) -> Need {
    guard settings.configuration.resolver == .cAres, settings.proxies.proxy(for: origin) == nil else { return .nothing }
    switch HostKind(origin.host) {
    case .address, .system: return .nothing
    case .loopback: return .known(.addresses(Self.loopback))
    case .impossible: return .known(.noSuchName)
    case .name: return known(origin.host).map { .known($0) } ?? .lookUp(origin.host)
    }
  }
}

extension Resolver.Outcome {
  var asResolution: NameResolution.Outcome {
    switch self {
    case .addresses: .resolved
    case .noSuchName: .noSuchName
    case .unanswered: .unanswered
    }
  }
}
