internal import HTTPTypes

/// A configuration and everything that is derived from it.
final class ResolvedConfiguration {
  let configuration: TransportConfiguration
  /// The reason why the configuration cannot be used.
  let problem: String?
  let proxies: ProxyRules
  let certificates: TrustedCertificates
  let share: Share?
  /// The list of the last request. Most requests have the same fields.
  private var lastList: HeaderList?

  /// - Parameter previous: the configuration whose cookies and TLS sessions are kept if they are compatible.
  init(
    _ configuration: TransportConfiguration, environment: (String) -> String?, previous: ResolvedConfiguration? = nil
  ) {
    self.configuration = configuration
    problem = configuration.problem(environment: environment)
    proxies = ProxyRules(option: configuration.proxy, environment: environment)
    certificates = TrustedCertificates(environment: environment)
    if let share = previous?.share, share.suits(configuration) {
      self.share = share
    } else {
      share = Share(configuration)
    }
  }

  /// The fields of a request as a list for curl; nil if memory is short.
  func list(of headers: HeaderFields) -> HeaderList? {
    if let lastList, lastList.headers == headers { return lastList }
    lastList = HeaderList(headers, leavingOut: configuration.fieldsLeftOut)
    return lastList
  }
}
