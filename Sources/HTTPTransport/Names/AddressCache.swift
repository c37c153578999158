internal import Platform

/// A cache of name servers' answers, each until its time to live has passed.
///
/// It has two generations. When the young one has half of the names that the cache may hold, it becomes the old one,
/// and the old one is dropped. A name that is read becomes young again.
struct AddressCache {
  private struct Entry {
    let answer: Resolver.Outcome
    let expiresAt: Instant
  }

  /// Bounds on the time for which an answer is stored, whatever its TTL.
  static let timeToLive: ClosedRange<Duration> = .seconds(5)...(.seconds(3600))
  /// Time for which a name is stored as nonexistent.
  static let noSuchNameTimeToLive = Duration.seconds(10)

  private var young: [String: Entry] = [:]
  private var old: [String: Entry] = [:]
  private let maxNames: Int

  init(maxNames: Int = 10_000) { self.maxNames = maxNames }

  /// Number of stored names, expired ones included.
  var count: Int { young.count + old.count }

  mutating func answer(for name: String, now: Instant) -> Resolver.Outcome? {
    if let entry = young[name] { return entry.expiresAt > now ? entry.answer : nil }
    guard let entry = old.removeValue(forKey: name), entry.expiresAt > now else { return nil }
    insert(entry, for: name)
    return entry.answer
  }

  /// - Parameters:
  ///   - answer: addresses, or that the name does not exist.
  ///   - timeToLive: of addresses. A nonexistent name has a fixed one.
  mutating func insert(
    _ answer: Resolver.Outcome, for name: String, timeToLive: Duration = .zero, now: Instant
  ) {
    let kept =
      answer == .noSuchName
      ? Self.noSuchNameTimeToLive
      : min(max(timeToLive, Self.timeToLive.lowerBound), Self.timeToLive.upperBound)
    old[name] = nil
    insert(Entry(answer: answer, expiresAt: now + kept), for: name)
  }

  private mutating func insert(_ entry: Entry, for name: String) {
    young[name] = entry
    if young.count > maxNames / 2 - 1 {
      old = young
      young = [:]
    }
  }
}

/// The outcomes that are known without asking a server: from the hosts file, or from earlier answers.
struct KnownNames {
  private var hostsFile: WatchedFile
  private var hosts = HostsFile()
  var cache = AddressCache()

  /// - Parameter hostsFile: path of a file as described by hosts(5).
  init(hostsFile: String) { self.hostsFile = WatchedFile(path: hostsFile) }

  /// - Parameter name: a host whose `HostKind` is `name`.
  mutating func outcome(for name: String, now: Instant) -> Resolver.Outcome? {
    if let bytes = hostsFile.change(now: now) { hosts = HostsFile(bytes) }
    let addresses = hosts[name]
    if !addresses.isEmpty { return .addresses(addresses) }
    return cache.answer(for: name, now: now)
  }
}

/// The addresses that curl was given, as lines for CURLOPT_RESOLVE. Pure.
///
/// Curl keeps them in a cache that all its handles share, and reads them when it connects. An entry stays as long as a
/// hop may need it, and is removed with one of the next hops.
struct AddressesInCurl {
  /// Number of hops that use an entry.
  private var users: [String: Int] = [:]
  private var unused: Set<String> = []

  /// The lines for a hop: they remove the entries that are no longer needed, and set the host's addresses.
  ///
  /// - Parameter key: host and port.
  mutating func begin(_ key: String, _ addresses: [IPAddress]) -> [String] {
    users[key, default: 0] += 1
    unused.remove(key)
    defer { unused.removeAll(keepingCapacity: true) }
    let list = addresses.map { $0.bytes.count == 4 ? $0.text : "[\($0.text)]" }.joined(separator: ",")
    return unused.map { "-\($0)" } + ["\(key):\(list)"]
  }

  /// Ends a hop's use of an entry.
  mutating func end(_ key: String) {
    guard let count = users[key] else { return assertionFailure("a hop must begin to use an entry before it ends") }
    users[key] = count > 1 ? count - 1 : nil
    if count == 1 { unused.insert(key) }
  }
}
