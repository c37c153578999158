internal import Platform

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
