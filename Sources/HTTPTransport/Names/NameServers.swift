internal import CAres
internal import Platform

/// The name servers to ask, and the limits for asking them.
struct NameServerConfiguration: Sendable {
  /// A list of `ADDRESS:PORT`, separated by commas; nil for those of resolv.conf(5), which is read again when it
  /// changes.
  var servers: String?
  /// Longest time for one query. A resolver that has to ask others may well need a second.
  var timeout = Duration.seconds(2)
  /// Time after which a query that is not answered leaves its place in the window to another one. Most answers come
  /// sooner.
  var quietAfter = Duration.milliseconds(250)
  /// Time after which look-ups end if no server answers anything.
  var silenceTimeout = Duration.seconds(10)
  var hostsFile = "/etc/hosts"
  var resolvConf = "/etc/resolv.conf"
  /// Whether IPv6 addresses on the Internet can be reached; nil to ask the system.
  var hasIPv6: Bool?
}

/// The name servers in use, and the channels to them.
///
/// A channel serves a limited number of queries before one with another port replaces it. So a forger of answers has to
/// guess a new port (RFC 5452 section 9.2), and a channel's receive buffer can hold all its answers.
final class NameServers {
  private static let queriesPerChannel = 256
  /// Interval after which the servers are read again even if their file is unchanged: it may have been unreadable.
  private static let reloadInterval = Duration.seconds(60)
  private static let isReady = ares_library_init(ARES_LIB_INIT_ALL) == cares_success

  private(set) var searchList = SearchList()
  /// The server for the first attempt of a query.
  var choice = ServerChoice(now: .now)
  private let configuration: NameServerConfiguration
  private let poll: SocketPoll
  private var resolvConf: WatchedFile
  private var reloadedAt = Instant.now
  private var ipv6Route = IPv6Route()
  private let ended: (NameQuery, NameQuery.End) -> Void
  /// The list from c-ares, which owns the servers.
  private var list: UnsafeMutablePointer<ares_addr_port_node>?
  private var servers: [UnsafePointer<ares_addr_port_node>] = []
  /// The channel to each server.
  private var channels: [NameServerChannel?] = []
  /// Replaced channels, for which some answers are still to come.
  private var retired: [NameServerChannel] = []

  /// - Parameter ended: called once for each query, from within `ask`, `SocketPoll.reportReady` or `checkTimeouts`.
  init(
    _ configuration: NameServerConfiguration, poll: SocketPoll, ended: @escaping (NameQuery, NameQuery.End) -> Void
  ) {
    self.configuration = configuration
    self.poll = poll
    self.ended = ended
    resolvConf = WatchedFile(path: configuration.resolvConf)
  }

  deinit { ares_free_data(list) }

  var count: Int { servers.count }

  /// Whether IPv6 addresses must be looked up and tried first.
  func prefersIPv6(now: Instant) -> Bool { configuration.hasIPv6 ?? ipv6Route.exists(now: now) }

  /// Reads the list of servers if it may have changed. Queries in flight continue.
  func reloadIfNeeded(now: Instant) {
    let hasChanged = resolvConf.hasChanged(now: now)
    if hasChanged { choice = ServerChoice(now: now) }
    guard hasChanged || reloadedAt.duration(to: now) > Self.reloadInterval else { return }
    reloadedAt = now
    reload()
  }

  private func reload() {
    retired += channels.compactMap { $0 }
    ares_free_data(list)
    (list, servers, searchList) = (nil, [], SearchList())
    var channel: ares_channel?
    if Self.isReady, ares_init(&channel) == cares_success, let channel {
      defer { ares_destroy(channel) }
      if let servers = configuration.servers {
        ares_set_servers_ports_csv(channel, servers)
      } else {
        searchList = Self.searchList(of: channel)
      }
      ares_get_servers_ports(channel, &list)
    }
    var next = list
    while let server = next {
      servers.append(server)
      next = server.pointee.next
    }
    channels = Array(repeating: nil, count: count)
  }

  private static func searchList(of channel: ares_channel) -> SearchList {
    var options = ares_options()
    var mask: Int32 = 0
    guard ares_save_options(channel, &options, &mask) == cares_success else { return SearchList() }
    defer { ares_destroy_options(&options) }
    let domains = (0..<Int(options.ndomains)).compactMap { options.domains?[$0].map { String(cString: $0) } }
    return SearchList(domains: domains, minDots: Int(options.ndots))
  }

  /// Sends a query to the server with this number. It counts from zero, and is taken modulo `count`.
  func ask(_ query: NameQuery, server number: Int) {
    guard count > 0, let channel = channel(to: number % count) else { return ended(query, .lost) }
    channel.ask(query)
  }

  private func channel(to index: Int) -> NameServerChannel? {
    if let channel = channels[index] {
      if channel.queryCount < Self.queriesPerChannel { return channel }
      retired.append(channel)
    }
    channels[index] = NameServerChannel(servers[index], timeout: configuration.timeout, poll: poll, ended: ended)
    return channels[index]
  }

  /// Ends the queries that have timed out.
  ///
  /// - Returns: the milliseconds until the next one times out; nil if none is in flight.
  func checkTimeouts() -> Int32? {
    var left: Int32?
    for channel in channels.compactMap({ $0 }) + retired where channel.inFlight > 0 {
      channel.checkTimeouts()
      left = channel.timeLeft.map { min(left ?? $0, $0) } ?? left
    }
    retired.removeAll { $0.inFlight == 0 }
    return left
  }
}

/// The search domains of resolv.conf(5).
struct SearchList: Hashable {
  var domains: [String] = []
  /// A name with at least this number of dots is first asked unchanged.
  var minDots = 1

  /// The names to ask, one after the other, until one has an address.
  func candidates(for name: String) -> [String] {
    if name.hasSuffix(".") { return [name] }
    let inDomains = domains.map { $0 == "." ? name : name + "." + $0 }
    let isAsItIsFirst = name.utf8.count { $0 == UInt8(ascii: ".") } >= minDots
    return isAsItIsFirst ? [name] + inDomains : inDomains + [name]
  }
}

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
