internal import HTTPTypes

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
