internal import CCurl
internal import Platform

/// The location of the trusted certificates: what the environment names, as for curl's program, else libcurl's default,
/// else the file of another distribution, else the file that a release brings.
public struct TrustedCertificates {
  /// From `CURL_CA_BUNDLE`, else `SSL_CERT_FILE`, else found; nil for libcurl's default.
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
    let inRelease = pathInRelease("share/ca-certificates.crt")
    self.init(environment: environment, isReadable: { access($0, R_OK) == 0 }, inRelease: inRelease)
  }

  init(environment: (String) -> String?, isReadable: (String) -> Bool, inRelease: String? = nil) {
    func value(_ name: String) -> String? { environment(name).flatMap { $0.isEmpty ? nil : $0 } }
    let bundle = value("CURL_CA_BUNDLE")
    directory = bundle == nil ? value("SSL_CERT_DIR") : nil
    let named = bundle ?? value("SSL_CERT_FILE")
    // libcurl's default directory does not count, because it may be empty.
    let hasDefault = Self.defaults.file.map(isReadable) ?? false
    let needsOther = named == nil && directory == nil && !hasDefault
    file = needsOther ? Self.files.first(where: isReadable) ?? inRelease : named
    isFileAlone = (file != nil || hasDefault) && directory == nil
  }

  /// The paths of which at least one must exist for HTTPS.
  public var paths: [String] {
    if file != nil || directory != nil { return [file, directory].compactMap(\.self) }
    return [Self.defaults.file, Self.defaults.directory].compactMap(\.self)
  }

  /// The files of distributions, as Go's crypto/x509 lists them (root_linux.go).
  private static let files = [
    "/etc/ssl/certs/ca-certificates.crt",  // Debian, Alpine, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  // Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  // openSUSE
    "/etc/pki/tls/cacert.pem",  // OpenELEC
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // RHEL 10
    "/etc/ssl/cert.pem",  // Alpine without its package
    "/var/lib/ca-certificates/ca-bundle.pem",  // openSUSE
    "/etc/ssl/certs/ca-bundle.crt",  // NixOS
  ]

  /// Libcurl's own choice.
  static let defaults: (file: String?, directory: String?) = {
    guard let version = curl_version_info(CURLVERSION_SEVENTH)?.pointee else { return (nil, nil) }
    return (version.cainfo.map { String(cString: $0) }, version.capath.map { String(cString: $0) })
  }()
}
