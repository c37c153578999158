internal import CCurl
internal import HTTPTypes
internal import Platform
internal import Threads

/// A curl handle for one hop.
///
/// A handle is never reused: curl keeps state in it that must not reach another server. Before 8.2 that is a pointer to
/// a freed header line, which a folded line would lengthen; in all versions it is the host of a Host field, whose
/// cookies later requests would get.
final class EasyHandle {
  let raw: UnsafeMutableRawPointer
  let settings: ResolvedConfiguration
  /// The transfer that uses the handle now, to which the callbacks deliver.
  var transfer: Transfer?

  private let errorBuffer = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
  private var list: HeaderList?
  private var resolveList: UnsafeMutablePointer<curl_slist>?

  /// Size of curl's receive buffer for HTTP/2, in bytes: the longest header (128 kB) and everything else that one call
  /// may read for the stream. Curl allocates it with the connection; only filled pages take memory.
  ///
  /// libcurl before 8.1 makes nghttp2 pause if data does not fit into the buffer. If that data is the rest of a DATA
  /// frame and all that was read, libcurl does not call nghttp2 for the end of the frame until more arrives, and an
  /// answer without Content-Length never ends (`h2_process_pending_input` in http2.c, NGHTTP2_ERR_PAUSE in nghttp2's
  /// documentation).
  private static let http2Buffer = 512 << 10

  /// Fails if memory is short.
  init?(settings: ResolvedConfiguration, connections: Connections) {
    guard let raw = curl_easy_init() else {
      errorBuffer.deallocate()
      return nil
    }
    self.raw = raw
    self.settings = settings
    errorBuffer.pointee = 0
    let configuration = settings.configuration

    set(CURLOPT_NOSIGNAL, 1)
    // A transfer that ends during name resolution leaves the resolver's thread to end by itself. Without this option
    // curl would wait for the thread, and block all other transfers.
    set(CURLOPT_QUICK_EXIT, 1)
    set(CURLOPT_PROTOCOLS_STR, "http,https")
    set(CURLOPT_HTTP09_ALLOWED, 0)
    set(CURLOPT_FOLLOWLOCATION, 0)
    set(CURLOPT_HTTP_CONTENT_DECODING, 0)
    set(CURLOPT_HEADEROPT, CURLHEADER_SEPARATE)
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    // Keep idle connections alive in address translators, and detect dead ones.
    set(CURLOPT_TCP_KEEPALIVE, 1)
    set(CURLOPT_TCP_KEEPIDLE, 30)
    set(CURLOPT_TCP_KEEPINTVL, 15)
    set(CURLOPT_NOPROXY, "")
    if configuration.insecure {
      set(CURLOPT_SSL_VERIFYPEER, 0)
      set(CURLOPT_SSL_VERIFYHOST, 0)
      set(CURLOPT_PROXY_SSL_VERIFYPEER, 0)
      set(CURLOPT_PROXY_SSL_VERIFYHOST, 0)
    }
    if let file = settings.certificates.file {
      set(CURLOPT_CAINFO, file)
      set(CURLOPT_PROXY_CAINFO, file)
    }
    if let directory = settings.certificates.directory {
      set(CURLOPT_CAPATH, directory)
      set(CURLOPT_PROXY_CAPATH, directory)
    } else if settings.certificates.isFileAlone {
      _ = ccurl_set_pointer(raw, CURLOPT_CAPATH, nil)
      _ = ccurl_set_pointer(raw, CURLOPT_PROXY_CAPATH, nil)
    }
    // Enable cookies: those of the share, if it has any, else those that the redirects of one load set.
    set(CURLOPT_COOKIEFILE, "")
    if let share = settings.share { _ = ccurl_set_pointer(raw, CURLOPT_SHARE, share.raw) }

    // Curl calls back only during calls on this handle, the last of which is in `deinit`: unretained is enough.
    let context = Unmanaged.passUnretained(self).toOpaque()
    _ = ccurl_set_pointer(raw, CURLOPT_PRIVATE, context)
    _ = ccurl_set_pointer(raw, CURLOPT_WRITEDATA, context)
    _ = ccurl_set_pointer(raw, CURLOPT_HEADERDATA, context)
    _ = ccurl_set_pointer(raw, CURLOPT_OPENSOCKETDATA, context)
    _ = ccurl_set_pointer(raw, CURLOPT_PREREQDATA, context)
    _ = ccurl_set_pointer(raw, CURLOPT_ERRORBUFFER, errorBuffer)
    installCallbacks()
    connections.watch(raw)
  }

  deinit {
    curl_easy_cleanup(raw)
    curl_slist_free_all(resolveList)
    errorBuffer.deallocate()
  }

  /// The handle behind a callback's context or CURLOPT_PRIVATE.
  static func behind(_ context: UnsafeMutableRawPointer?) -> EasyHandle? {
    context.map { Unmanaged.fromOpaque($0).takeUnretainedValue() }
  }

  /// Sets the handle up for its request. Returns false if memory is short.
  ///
  /// - Parameters:
  ///   - cookies: see `cookies`.
  ///   - addresses: lines of CURLOPT_RESOLVE, with those of the target's host or of none; nil if curl finds them.
  ///   - connectTimeout: the time that is left for connecting.
  func prepare(
    _ target: Target, headers: HeaderFields, cookies: [String], proxy: String?, addresses: [String]?,
    connectTimeout: Duration, needsFreshConnection: Bool
  ) -> Bool {
    // Within this time curl also gives up an address that does not answer and tries the next one.
    set(CURLOPT_CONNECTTIMEOUT_MS, max(1, min(connectTimeout, .seconds(86_400)).millisecondsRoundedUp))
    if let addresses {
      // With a limit curl would check every entry of its cache whenever a request ends.
      set(CURLOPT_DNS_CACHE_TIMEOUT, -1)
      for line in addresses {
        guard let longer = curl_slist_append(resolveList, line) else { return false }
        resolveList = longer
      }
      _ = ccurl_set_list(raw, CURLOPT_RESOLVE, resolveList)
    }
    if needsFreshConnection { set(CURLOPT_FRESH_CONNECT, 1) }
    var headers = headers
    for cookie in cookies { set(CURLOPT_COOKIELIST, cookie) }
    if let requestCookies = headers["cookie"] {
      // Merge with curl's own cookies into one field (RFC 6265 section 5.4).
      headers.remove("cookie")
      set(CURLOPT_COOKIE, requestCookies)
    }
    guard let list = settings.list(of: headers) else { return false }
    self.list = list
    _ = ccurl_set_list(raw, CURLOPT_HTTPHEADER, list.raw)
    // Curl formats this field for each request, even if another takes its place. A proxy gets it with CONNECT.
    if !list.hasUserAgent || proxy != nil { set(CURLOPT_USERAGENT, settings.configuration.userAgent) }
    let isSecure = target.origin.scheme == "https"
    set(CURLOPT_HTTP_VERSION, isSecure ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1)
    // With TLS, the handshake tells whether requests can share a connection, which is worth waiting for. Without TLS
    // only the first response would tell, and a slow one would block all others of its origin.
    if isSecure {
      set(CURLOPT_PIPEWAIT, 1)
      set(CURLOPT_BUFFERSIZE, Self.http2Buffer)
    }
    if isSecure, proxy != nil { watchTunnel() }
    return set(CURLOPT_PROXY, proxy ?? "") && set(CURLOPT_URL, target.url)
  }

  /// Curl's message about a failure. It may be empty, and may name hosts.
  var errorText: String { String(cString: errorBuffer) }

  /// Whether the system had no thread or descriptors for a name look-up.
  var hasNoResolver: Bool { errorText.has("thread failed to start") }

  /// The errno of the last failed connect; 0 if there was none.
  var connectErrno: Int32 {
    var code = 0
    _ = ccurl_get_long(raw, CURLINFO_OS_ERRNO, &code)
    return Int32(truncatingIfNeeded: code)
  }

  /// Number of connections that the request has opened.
  var connectionsOpened: Int {
    var count = 0
    _ = ccurl_get_long(raw, CURLINFO_NUM_CONNECTS, &count)
    return count
  }

  /// Durations of the name look-up, of connecting and of the TLS handshake (a proxy's tunnel included); nil for a step
  /// that the request did not need.
  var durations: (name: Duration?, connect: Duration?, tls: Duration?) {
    guard connectionsOpened > 0 else { return (nil, nil, nil) }
    func time(_ info: CURLINFO) -> Duration? {
      var microseconds: curl_off_t = 0
      _ = ccurl_get_offset(raw, info, &microseconds)
      return microseconds > 0 ? .microseconds(microseconds) : nil
    }
    let (name, connect, tls) = (
      time(CURLINFO_NAMELOOKUP_TIME_T), time(CURLINFO_CONNECT_TIME_T), time(CURLINFO_APPCONNECT_TIME_T)
    )
    return (name, connect.map { max(.zero, $0 - (name ?? .zero)) }, tls.map { max(.zero, $0 - (connect ?? .zero)) })
  }

  /// The cookies that the hops of this load have set, each as a line in Netscape's format; empty if the share has them.
  var cookies: [String] {
    var list: UnsafeMutablePointer<curl_slist>?
    guard settings.configuration.cookies == nil, ccurl_get_list(raw, CURLINFO_COOKIELIST, &list) == CURLE_OK else {
      return []
    }
    defer { curl_slist_free_all(list) }
    return sequence(first: list, next: { $0?.pointee.next }).compactMap { $0?.pointee.data.map { String(cString: $0) } }
  }

  /// Bytes of the response's body that were read, before content decoding.
  var bytesOnWire: Int64 {
    var count: curl_off_t = 0
    _ = ccurl_get_offset(raw, CURLINFO_SIZE_DOWNLOAD_T, &count)
    return Int64(count)
  }

  /// Makes curl offer held bytes again, from within this call. Returns false if curl fails.
  func resume() -> Bool { curl_easy_pause(raw, CURLPAUSE_CONT) == CURLE_OK }

  private func set(_ option: CURLoption, _ value: some BinaryInteger) {
    _ = ccurl_set_long(raw, option, Int(value))
  }

  @discardableResult
  private func set(_ option: CURLoption, _ value: String) -> Bool {
    ccurl_set_string(raw, option, value) == CURLE_OK
  }

  /// Limits the time for which curl reads the answer to CONNECT. Curl reads it byte by byte for as long as input
  /// arrives, and calls the progress function for each byte.
  private func watchTunnel() {
    _ = ccurl_set_progress_callback(
      raw, { context, _, _, _, _ in EasyHandle.behind(context)?.transfer?.mayReadTunnel() == false ? 1 : 0 },
      Unmanaged.passUnretained(self).toOpaque())
  }

  private func installCallbacks() {
    _ = ccurl_set_data_callback(raw, CURLOPT_HEADERFUNCTION) { bytes, _, count, context in
      guard let transfer = EasyHandle.behind(context)?.transfer else { return 0 }
      return transfer.received(line: UnsafeRawBufferPointer(start: bytes, count: count)) ? count : 0
    }
    _ = ccurl_set_data_callback(raw, CURLOPT_WRITEFUNCTION) { bytes, _, count, context in
      guard let transfer = EasyHandle.behind(context)?.transfer else { return 0 }
      switch transfer.received(bytes: UnsafeRawBufferPointer(start: bytes, count: count)) {
      case .taken: return count
      case .held: return Int(CURL_WRITEFUNC_PAUSE)
      case .refused: return 0
      }
    }
    _ = ccurl_set_open_socket_callback(raw) { context, _, address in
      guard let transfer = EasyHandle.behind(context)?.transfer, let address else { return CURL_SOCKET_BAD }
      return transfer.openSocket(for: address.pointee, to: ccurl_address(address))
    }
    _ = ccurl_set_before_request_callback(raw) { context, peer, local, peerPort, localPort in
      guard let transfer = EasyHandle.behind(context)?.transfer, let peer, let local else {
        return CURL_PREREQFUNC_ABORT
      }
      let ends = ConnectionEnds(
        localAddress: String(cString: local), localPort: UInt16(truncatingIfNeeded: localPort),
        peerAddress: String(cString: peer), peerPort: UInt16(truncatingIfNeeded: peerPort))
      return transfer.mayRequest(on: ends) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
    }
  }
}
