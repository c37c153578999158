internal import HTTPTypes

/// A configuration in force, with all that follows from it.
final class ResolvedConfiguration {
  let configuration: TransportConfiguration
  /// What keeps the configuration from being used.
  let problem: String?
  let proxies: ProxyRules
  let certificateFile: String?
  let certificateDirectory: String?
  let share: Share?

  /// - Parameter previous: whose cookies and TLS sessions stay, if they may.
  init(_ configuration: TransportConfiguration, environment: (String) -> String?, previous: ResolvedConfiguration? = nil) {
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
