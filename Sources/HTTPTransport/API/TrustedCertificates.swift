internal import CCurl

/// The location of the trusted certificates: what the environment names, as for curl's program, else libcurl's default.
public struct TrustedCertificates {
  /// From `CURL_CA_BUNDLE`, else `SSL_CERT_FILE`.
  let file: String?
  /// From `SSL_CERT_DIR`, unless `CURL_CA_BUNDLE` is set.
  let directory: String?

  /// - Parameter environment: the value of a variable.
  public init(environment: (String) -> String?) {
    func value(_ name: String) -> String? { environment(name).flatMap { $0.isEmpty ? nil : $0 } }
    let bundle = value("CURL_CA_BUNDLE")
    file = bundle ?? value("SSL_CERT_FILE")
    directory = bundle == nil ? value("SSL_CERT_DIR") : nil
  }

  /// The paths of which at least one must exist for HTTPS.
  public var paths: [String] {
    if file != nil || directory != nil { return [file, directory].compactMap(\.self) }
    guard let version = curl_version_info(CURLVERSION_SEVENTH)?.pointee else { return [] }
    return [version.cainfo, version.capath].compactMap { $0.map { String(cString: $0) } }
  }
}
