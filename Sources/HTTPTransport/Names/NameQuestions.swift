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
