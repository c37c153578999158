internal import CCurl
internal import Platform

/// The location of the trusted certificates: what the environment names, as for curl's program, else libcurl's default.
public struct TrustedCertificates {
  /// From `CURL_CA_BUNDLE`, else `SSL_CERT_FILE`.
  let file: String?
  /// From `SSL_CERT_DIR`, unless `CURL_CA_BUNDLE` is set.
  let directory: String?
  /// Whether a file alone determines what is trusted: one that the environment names, or libcurl's default file. Then
  /// libcurl's default directory, which has the same certificates as the default file, is not read.
  ///
  /// Curl parses a file once for all connections only if there is no directory (`Curl_ssl_setup_x509_store` in
  /// vtls/openssl.c). Otherwise it does so for each new connection, and the certificates of a system take 30 ms.
  let isFileAlone: Bool

  /// - Parameter environment: the value of a variable.
  public init(environment: (String) -> String?) {
    self.init(environment: environment, isReadable: { access($0, R_OK) == 0 })
  }

  init(environment: (String) -> String?, isReadable: (String) -> Bool) {
    func value(_ name: String) -> String? { environment(name).flatMap { $0.isEmpty ? nil : $0 } }
    let bundle = value("CURL_CA_BUNDLE")
    file = bundle ?? value("SSL_CERT_FILE")
    directory = bundle == nil ? value("SSL_CERT_DIR") : nil
    let hasFile = file != nil || Self.defaults.file.map(isReadable) ?? false
    isFileAlone = hasFile && directory == nil
  }

  /// The paths of which at least one must exist for HTTPS.
  public var paths: [String] {
    if file != nil || directory != nil { return [file, directory].compactMap(\.self) }
    return [Self.defaults.file, Self.defaults.directory].compactMap(\.self)
  }

  /// Libcurl's own choice.
  static let defaults: (file: String?, directory: String?) = {
    guard let version = curl_version_info(CURLVERSION_SEVENTH)?.pointee else { return (nil, nil) }
    return (version.cainfo.map { String(cString: $0) }, version.capath.map { String(cString: $0) })
  }()
}
