internal import CCurl
internal import HTTPTypes
internal import Platform

extension TransferError {
  /// Maps an error code of curl; the only place that does.
  init(_ code: CURLcode, of transfer: Transfer, on easy: EasyHandle) {
    let server = transfer.server
    let text = easy.errorText
    func error(_ kind: Kind, _ message: String) -> TransferError { TransferError(kind, message) }

    let isConnecting = transfer.isConnecting
    let hasProxy = transfer.proxy != nil
    self =
      switch code {
      case CURLE_COULDNT_RESOLVE_HOST where easy.hasNoResolver:
        error(.network, "the system has no thread or descriptor left to resolve \(transfer.origin.host)")
      case CURLE_COULDNT_RESOLVE_HOST: transfer.noAddress
      case CURLE_COULDNT_RESOLVE_PROXY: error(.connect, "the proxy's host does not resolve to an address")
      case CURLE_PROXY: error(.connect, "the proxy did not connect to \(server)")
      case CURLE_SSL_CONNECT_ERROR where Self.isOfClosedConnection(text):
        error(.closed, "\(transfer.peer) closed the connection during the TLS handshake")
      case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER,
        CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_CRL_BADFILE, CURLE_SSL_INVALIDCERTSTATUS,
        CURLE_SSL_CLIENTCERT, CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_INITFAILED, CURLE_SSL_ENGINE_SETFAILED:
        error(.tls, Self.tlsProblem(text.isEmpty ? String(cString: curl_easy_strerror(code)) : text, of: transfer.peer))
      case CURLE_COULDNT_CONNECT where transfer.sockets.isExhausted:
        error(.network, "the system has no socket left")
      case CURLE_COULDNT_CONNECT where transfer.sockets.blocked > 0 && transfer.sockets.opened == 0:
        error(.blockedAddress, "\(server) is not a public address")
      case CURLE_OPERATION_TIMEDOUT where isConnecting:
        TransferError(.timeout, "connecting to \(transfer.peer) timed out", phase: .connect)
      case CURLE_COULDNT_CONNECT: error(.connect, Self.connectProblem(easy.connectErrno, of: transfer.peer))
      case CURLE_RECV_ERROR where isConnecting && hasProxy, CURLE_SEND_ERROR where isConnecting && hasProxy,
        CURLE_GOT_NOTHING where isConnecting && hasProxy:
        error(.connect, "the proxy did not connect to \(server)")
      case CURLE_UNSUPPORTED_PROTOCOL where !isConnecting, CURLE_WEIRD_SERVER_REPLY:
        error(
          .network,
          text.has("Content-Length")
            ? "\(server) sent a malformed Content-Length" : "\(server) sent an answer that is not HTTP")
      case CURLE_HTTP2_STREAM where transfer.receiver.head == nil && text.has("PROTOCOL_ERROR"):
        error(.network, "\(server) sent a malformed HTTP/2 answer (status, length or another field)")
      case CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT: error(.invalidRequest, "the URL cannot be transferred")
      // Curl reports a header beyond its own limits as out of memory.
      case CURLE_OUT_OF_MEMORY where !isConnecting && transfer.receiver.head == nil:
        error(.tooLarge, "the header of the answer is too large")
      case CURLE_PARTIAL_FILE where transfer.receiver.head == nil,
        CURLE_GOT_NOTHING where transfer.receiver.head == nil:
        error(.closed, "\(server) closed the connection before an answer")
      case CURLE_PARTIAL_FILE: error(.truncated, "\(server) closed the connection before the end of the body")
      case CURLE_RECV_ERROR where text.has("chunk"): error(.malformed, "\(server) sent a malformed body")
      case CURLE_RECV_ERROR where transfer.receiver.head != nil, CURLE_HTTP2 where transfer.receiver.head != nil,
        CURLE_HTTP2_STREAM where transfer.receiver.head != nil, CURLE_GOT_NOTHING:
        error(.truncated, "the connection to \(server) broke before the end of the body")
      case CURLE_RECV_ERROR, CURLE_SEND_ERROR:
        error(.closed, "\(server): \(String(cString: curl_easy_strerror(code)))")
      case CURLE_BAD_CONTENT_ENCODING: error(.undecodable, "\(server) sent a body that cannot be decompressed")
      default: error(.network, "\(server): \(String(cString: curl_easy_strerror(code)))")
      }
  }

  private static func connectProblem(_ code: Int32, of peer: String) -> String {
    switch code {
    case ECONNREFUSED: "\(peer) refused the connection"
    case EHOSTUNREACH, ENETUNREACH: "\(peer) is unreachable"
    case ECONNRESET: "\(peer) reset the connection"
    case ETIMEDOUT: "connecting to \(peer) timed out"
    case 0: "connecting to \(peer) failed"
    default: "connecting to \(peer) failed: \(String(cString: strerror(code)))"
    }
  }

  /// A sentence for a failed handshake, with the text of curl or OpenSSL at its end.
  private static func tlsProblem(_ text: String, of peer: String) -> String {
    func contains(_ parts: String...) -> Bool { parts.contains { text.has($0) } }
    let problem =
      if contains("wrong version number", "packet length too long", "http request") {
        "\(peer) does not speak TLS on this port"
      } else if contains("certificate has expired") {
        "the certificate of \(peer) has expired"
      } else if contains("no alternative certificate subject name", "does not match target host") {
        "the certificate of \(peer) is for another host name"
      } else if contains("certificate problem") {
        "the certificate of \(peer) is not trusted"
      } else {
        "the TLS handshake with \(peer) failed"
      }
    return "\(problem) (\(text))"
  }

  /// Whether a handshake failed because the peer closed the connection, which curl reports in the error text only.
  private static func isOfClosedConnection(_ text: String) -> Bool {
    ["SSL_ERROR_SYSCALL", "Recv failure", "Send failure", "unexpected eof"].contains { text.has($0) }
  }
}
