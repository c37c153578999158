internal import CCurl
internal import CTLS
internal import Platform

/// Measures and limits the time that curl spends on one connection within one call.
///
/// libcurl before 8.1 reads an HTTP/2 connection for as long as frames arrive that bring nothing for the current
/// stream. OpenSSL reads for as long as TLS messages without content arrive. A server that sends such input endlessly
/// would keep the thread, and so block all other transfers. An ordinary call takes well under a millisecond for each
/// stream, since it reads one record or buffer for each.
struct ServiceTime {
  /// Identifies a connection for as long as it is open.
  typealias Connection = UnsafeMutableRawPointer

  /// Reading time within one call after which a connection is suspected.
  static let suspectedAfter = Duration.milliseconds(80)
  /// Processor time for which a suspected connection may be read further before it is ended. Wall-clock time would also
  /// count while the thread has no processor.
  static let endedAfter = Duration.milliseconds(40)

  private struct Use {
    var time = Duration.zero
    /// The thread's processor time when the connection came under suspicion.
    var suspectedAt: Duration?
  }

  /// The connections of this call, except the current one.
  private var uses: [Connection: Use] = [:]
  private var current: (connection: Connection, use: Use, since: Instant)?

  /// Discards the measurements of the previous call.
  mutating func beginCall() {
    guard current != nil else { return }
    current = nil
    uses.removeAll(keepingCapacity: true)
  }

  /// Adds the time since the last record of this call to the connection of that record.
  ///
  /// - Parameter processorTime: the processor time that the thread has used since it began.
  /// - Returns: whether `connection`, of which a record is being read, must be ended.
  mutating func isTooLong(
    for connection: Connection, now: Instant, processorTime: () -> Duration
  ) -> Bool {
    if let last = current {
      var use = last.use
      use.time += last.since.duration(to: now)
      if last.connection != connection {
        uses[last.connection] = use
        use = uses[connection] ?? Use()
      }
      current = (connection, use, now)
    } else {
      current = (connection, uses[connection] ?? Use(), now)
    }
    guard let use = current?.use, use.time > Self.suspectedAfter else { return false }
    let used = processorTime()
    if let suspectedAt = use.suspectedAt { return used - suspectedAt > Self.endedAfter }
    current?.use.suspectedAt = used
    return false
  }
}

/// The TLS state of a handle's connection. It is known if curl uses the same OpenSSL as this module.
struct TLSConnection {
  private let ssl: UnsafeMutableRawPointer

  /// Fails for a connection without TLS.
  init?(of easy: EasyHandle) {
    guard Self.isKnown, let ssl = ccurl_openssl(easy.raw) else { return nil }
    self.ssl = ssl
  }

  var identity: ServiceTime.Connection { ssl }

  /// Whether curl uses the same OpenSSL as this module. The text is like `OpenSSL/3.0.19`; TLS libraries that curl could
  /// use instead are in parentheses.
  ///
  /// It is not `curl_version`, which initialises OpenLDAP, which resolves the name of this machine (libcurl 7.88): that
  /// blocks for as long as a name server is silent.
  static let isKnown =
    curl_version_info(CURLVERSION_FIRST)?.pointee.ssl_version
    .map { String(cString: $0).split(separator: " ").contains { $0.hasPrefix("OpenSSL/\(OPENSSL_VERSION_MAJOR).") } }
    ?? false

  var isHTTP2: Bool { ctls_is_http2(ssl) != 0 }

  /// Whether unrequested bytes were read together with requested ones.
  var hasUnread: Bool { ctls_has_unread(ssl) != 0 }
}
