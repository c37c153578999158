internal import CCurl
internal import HTTPTypes
internal import Threads

/// A curl handle for one hop.
///
/// None is used again: curl keeps state in a handle that must not reach another server. Before 8.2 that is a pointer
/// to a freed header line, which a folded line would lengthen, and in all versions the host of a Host field, by which
/// later requests would get its cookies.
final class EasyHandle {
  let raw: UnsafeMutableRawPointer
  let settings: ResolvedConfiguration
  /// The transfer that uses the handle now. The callbacks deliver to it.
  var transfer: Transfer?

  private let errorBuffer = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
  private var list: UnsafeMutablePointer<curl_slist>?
  private var resolveList: UnsafeMutablePointer<curl_slist>?

  /// The size of curl's buffer for an answer over HTTP/2, in bytes: the longest header (128 kB) and what else one call
  /// may read for the stream. Curl allocates it once there is a connection; memory is taken for what is filled.
  ///
  /// libcurl before 8.1 has nghttp2 pause at what does not fit into the buffer. Where that is the rest of a DATA frame
  /// and all that was read, it does not call nghttp2 for the end of the frame until more arrives, and an answer without
  /// Content-Length never ends (`h2_process_pending_input` in http2.c, NGHTTP2_ERR_PAUSE in nghttp2's documentation).
  private static let http2Buffer = 512 << 10

  /// nil when memory is short.
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
    // A transfer that ends while its host's name is being resolved leaves the resolver's thread to end by itself.
    // Without this curl would wait for it, and all other transfers with it.
    set(CURLOPT_QUICK_EXIT, 1)
    set(CURLOPT_PROTOCOLS_STR, "http,https")
    set(CURLOPT_HTTP09_ALLOWED, 0)
    set(CURLOPT_FOLLOWLOCATION, 0)
    set(CURLOPT_ACCEPT_ENCODING, ContentDecoder.accepted)
    set(CURLOPT_HTTP_CONTENT_DECODING, 0)
    set(CURLOPT_USERAGENT, configuration.userAgent)
    set(CURLOPT_HEADEROPT, CURLHEADER_SEPARATE)
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    // Idle connections stay open in address translators on the way, and dead ones are found out.
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
    if let file = settings.certificateFile {
      set(CURLOPT_CAINFO, file)
      set(CURLOPT_PROXY_CAINFO, file)
    }
    if let directory = settings.certificateDirectory {
      set(CURLOPT_CAPATH, directory)
      set(CURLOPT_PROXY_CAPATH, directory)
    }
    if configuration.cookies != nil {
      // Switches this handle's cookies on; they are in the share.
      set(CURLOPT_COOKIEFILE, "")
    }
    if let share = settings.share { _ = ccurl_set_pointer(raw, CURLOPT_SHARE, share.raw) }

    // curl calls back during calls on this handle only, which end with `deinit`: unretained is enough.
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
    curl_slist_free_all(list)
    curl_slist_free_all(resolveList)
    errorBuffer.deallocate()
  }

  /// The handle behind a callback's context or CURLOPT_PRIVATE.
  static func behind(_ context: UnsafeMutableRawPointer?) -> EasyHandle? {
    context.map { Unmanaged.fromOpaque($0).takeUnretainedValue() }
  }

  /// Sets the handle up for its request; false when memory is short.
  ///
  /// - Parameters:
  ///   - addresses: lines of CURLOPT_RESOLVE, with those of the target's host or of none; nil if curl finds them.
  ///   - connectTimeout: for what is left of connecting.
  func prepare(
    _ target: Target, headers: HeaderFields, proxy: String?, addresses: [String]?, connectTimeout: Duration,
    needsFreshConnection: Bool
  ) -> Bool {
    // Also makes curl give up an address that does not answer in time to try the next one.
    set(CURLOPT_CONNECTTIMEOUT_MS, max(1, min(connectTimeout, .seconds(86_400)).millisecondsRoundedUp))
    if let addresses {
      // With a limit curl would look at each entry of its cache whenever a request ends.
      set(CURLOPT_DNS_CACHE_TIMEOUT, -1)
      for line in addresses {
        guard let longer = curl_slist_append(resolveList, line) else { return false }
        resolveList = longer
      }
      _ = ccurl_set_list(raw, CURLOPT_RESOLVE, resolveList)
    }
    if needsFreshConnection { set(CURLOPT_FRESH_CONNECT, 1) }
    var headers = headers
    if settings.configuration.cookies != nil, let own = headers["cookie"] {
      // One field with curl's own and these (RFC 6265 section 5.4).
      headers.remove("cookie")
      set(CURLOPT_COOKIE, own)
    }
    let leftOut = settings.configuration.fieldsLeftOut
    list = RequestHeaders.list(headers, leavingOut: leftOut)
    if list == nil && !(headers.isEmpty && leftOut.isEmpty) { return false }
    _ = ccurl_set_list(raw, CURLOPT_HTTPHEADER, list)
    let isSecure = target.origin.scheme == "https"
    set(CURLOPT_HTTP_VERSION, isSecure ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1)
    // With TLS the handshake tells whether requests can share a connection, which is worth waiting for. Without it only
    // the first response would tell, and one slow response would hold up all others of its origin.
    if isSecure {
      set(CURLOPT_PIPEWAIT, 1)
      set(CURLOPT_BUFFERSIZE, Self.http2Buffer)
    }
    if isSecure, proxy != nil { watchTunnel() }
    return set(CURLOPT_PROXY, proxy ?? "") && set(CURLOPT_URL, target.url)
  }

  /// What curl has to say about a failure; may be empty. It may name hosts.
  var errorText: String { String(cString: errorBuffer) }

  /// Whether the system gave no thread to look the name up, or no descriptors for it.
  var hasNoResolver: Bool { errorText.contains("thread failed to start") }

  /// How many connections the request has opened.
  var connectionsOpened: Int {
    var count = 0
    _ = ccurl_get_long(raw, CURLINFO_NUM_CONNECTS, &count)
    return count
  }

  /// How long it took to find the host's addresses, to connect and to shake hands for TLS (with a proxy, its tunnel
  /// included); nil where that was not done for the request.
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

  /// How many bytes of the response's body were read, before content encodings are undone.
  var bytesOnWire: Int64 {
    var count: curl_off_t = 0
    _ = ccurl_get_offset(raw, CURLINFO_SIZE_DOWNLOAD_T, &count)
    return Int64(count)
  }

  /// Has curl offer again what was held back, from within this call. False when it was not taken.
  func resume() -> Bool { curl_easy_pause(raw, CURLPAUSE_CONT) == CURLE_OK }

  private func set(_ option: CURLoption, _ value: some BinaryInteger) {
    _ = ccurl_set_long(raw, option, Int(value))
  }

  @discardableResult
  private func set(_ option: CURLoption, _ value: String) -> Bool {
    ccurl_set_string(raw, option, value) == CURLE_OK
  }

  /// Curl reads the answer to CONNECT for as long as input comes, byte by byte, and calls the progress function for
  /// each byte.
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
