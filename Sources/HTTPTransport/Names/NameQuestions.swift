/// The types of records that hold addresses (RFC 1035 section 3.4.1, RFC 3596 section 2.1).
enum RecordType: Hashable, CaseIterable {
  case a, aaaa
}

/// The questions about one name, and the decisions that follow from their answers. Pure.
///
/// A and AAAA are asked together if IPv6 addresses can be reached; otherwise AAAA only if there is no A. If neither
/// exists, the next name of the search list is asked.
struct NameQuestions {
  enum Answer: Hashable {
    /// Never empty. The time to live is that of the answer, aliases included.
    case addresses([IPAddress], timeToLive: Duration)
    /// The name has no address of this type.
    case noData
    /// The name does not exist.
    case noSuchName
    /// The name servers do not answer, or their answer cannot be parsed.
    case failed
  }

  enum Step: Hashable {
    case wait
    /// Ask for these types of `name`.
    case ask([RecordType])
    case resolved([IPAddress], timeToLive: Duration)
    case noSuchName
    case unanswered
  }

  /// Time to live of addresses if those of the other type could not be obtained.
  static let timeToLiveOfHalf = Duration.seconds(30)

  private let candidates: [String]
  private let prefersIPv6: Bool
  private var candidateIndex = 0
  private var askedTypes: Set<RecordType> = []
  private var answers: [RecordType: Answer] = [:]

  /// - Parameters:
  ///   - candidates: the names to ask, one after the other; must not be empty.
  ///   - prefersIPv6: whether IPv6 addresses can be reached, and so are tried first.
  init(candidates: [String], prefersIPv6: Bool) {
    precondition(!candidates.isEmpty, "no name to ask for")
    self.candidates = candidates
    self.prefersIPv6 = prefersIPv6
  }

  /// The name that is being asked.
  var name: String { candidates[candidateIndex] }

  /// Begins with the current name, and returns the types to ask.
  mutating func begin() -> [RecordType] {
    let types: [RecordType] = prefersIPv6 ? [.a, .aaaa] : [.a]
    askedTypes = Set(types)
    answers = [:]
    return types
  }

  /// Whether to repeat a question that was not answered: not if there are addresses of the other type.
  func isWorthRepeating(_ type: RecordType) -> Bool {
    !answers.contains { other, answer in
      if case .addresses = answer { other != type } else { false }
    }
  }

  mutating func answered(_ type: RecordType, _ answer: Answer) -> Step {
    answers[type] = answer
    guard answers.count == askedTypes.count else { return .wait }
    if let result = availableAddresses { return .resolved(result.addresses, timeToLive: result.timeToLive) }
    if answers.values.contains(.failed) { return .unanswered }
    if !answers.values.contains(.noSuchName), askedTypes.insert(.aaaa).inserted { return .ask([.aaaa]) }
    guard candidateIndex + 1 < candidates.count else { return .noSuchName }
    candidateIndex += 1
    return .ask(begin())
  }

  /// The addresses obtained so far, in the order in which they must be tried.
  var availableAddresses: (addresses: [IPAddress], timeToLive: Duration)? {
    let order: [RecordType] = prefersIPv6 ? [.aaaa, .a] : [.a, .aaaa]
    var addresses: [IPAddress] = []
    var minTimeToLive = Duration.seconds(Int64(Int32.max))
    for case .addresses(let some, let timeToLive)? in order.map({ answers[$0] }) {
      addresses += some
      minTimeToLive = min(minTimeToLive, timeToLive)
    }
    guard !addresses.isEmpty else { return nil }
    let isHalf = answers.count < askedTypes.count || answers.values.contains(.failed)
    return (addresses, isHalf ? min(minTimeToLive, Self.timeToLiveOfHalf) : minTimeToLive)
  }
}

/// The number of queries that may be in flight to the name servers at once, adapted to their outcomes. Pure.
///
/// The window grows by one for every sixteen answers that arrive while it is the limit. Each lost or refused query
/// shrinks it by one, but at most as often as queries are answered: without answers, the names are the cause. So
/// queries that a name server drops because it has too many are repeated when it has fewer, and the window settles at
/// the number that the server accepts. If no attempt at a query is answered, the name is the cause, and the window
/// grows back by that query's losses. If a later attempt is answered, the server has dropped queries; from then on
/// the window grows only once a round trip.
///
/// A query that is not answered for a while is quiet: up to `maxQuiet` of these do not count in the window, so that
/// names without an answer do not delay the others.
struct QueryWindow {
  static let sizes = 8...1_000
  static let maxQuiet = 128
  private static let answersForGrowth = 16

  private(set) var size = 64
  private(set) var inFlight = 0
  private var quiet = 0
  /// Number of answers for which the window has not shrunk; at most `size`.
  private var unspentAnswers = 0
  private var hasSeenDrops = false
  /// Whether the window is what delays queries.
  private var isLimiting = false
  /// Number of answers since the window last grew.
  private var answers = 0

  var isFull: Bool { occupied >= size }

  private var occupied: Int { inFlight - min(quiet, Self.maxQuiet) }

  mutating func sent() {
    inFlight += 1
    if isFull { isLimiting = true }
  }

  /// Records that a query in flight is quiet, or no longer is.
  mutating func setQuiet(_ isQuiet: Bool) { quiet += isQuiet ? 1 : -1 }

  /// Records that a query was answered.
  ///
  /// - Parameter losses: the number by which its earlier attempts have shrunk the window.
  mutating func answered(losses: Int) {
    inFlight -= 1
    unspentAnswers = min(unspentAnswers + 1, size)
    if losses > 0 { hasSeenDrops = true }
    if 2 * occupied < size { isLimiting = false }
    guard isLimiting else { return }
    answers += 1
    guard answers >= (hasSeenDrops ? max(Self.answersForGrowth, size) : Self.answersForGrowth) else { return }
    answers = 0
    size = min(size + 1, Self.sizes.upperBound)
  }

  /// Records that a query was refused or not answered in time. Returns true if that has shrunk the window.
  mutating func lost() -> Bool {
    inFlight -= 1
    guard size > Self.sizes.lowerBound, unspentAnswers > 0 else { return false }
    unspentAnswers -= 1
    size -= 1
    return true
  }

  /// Records that a lost query will not be repeated.
  ///
  /// - Parameter losses: the number by which its attempts have shrunk the window.
  mutating func gaveUp(losses: Int) { size = min(size + losses, Self.sizes.upperBound) }
}
