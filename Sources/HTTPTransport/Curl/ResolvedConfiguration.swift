internal import HTTPTypes

/// A configuration and everything that is derived from it.
final class ResolvedConfiguration {
  let configuration: TransportConfiguration
  /// The reason why the configuration cannot be used.
  let problem: String?
  let proxies: ProxyRules
  let certificateFile: String?
  let certificateDirectory: String?
  let share: Share?

  /// - Parameter previous: the configuration whose cookies and TLS sessions are kept if they are compatible.
  init(
    _ configuration: TransportConfiguration, environment: (String) -> String?, previous: ResolvedConfiguration? = nil
  ) {
    func value(_ name: String) -> String? { environment(name).flatMap { $0.isEmpty ? nil : $0 } }
    self.configuration = configuration
    problem = configuration.problem(environment: environment)
    proxies = ProxyRules(option: configuration.proxy, environment: environment)
    let bundle = value("CURL_CA_BUNDLE")
    certificateFile = bundle ?? value("SSL_CERT_FILE")
    certificateDirectory = bundle == nil ? value("SSL_CERT_DIR") : nil
    if let share = previous?.share, share.suits(configuration) {
      self.share = share
    } else {
      share = Share(configuration)
    }
  }
}
