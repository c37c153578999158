internal import CCurl
internal import Threads

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// What came of the addresses that a hop tried.
struct ConnectionAttempts {
  /// Addresses that the policy refused.
  var blocked = 0
  private(set) var opened = 0
  /// The system had no descriptor or no memory for a socket.
  private(set) var isExhausted = false

  /// - Parameter patience: how long the peer may leave what was sent unacknowledged. Then the connection is broken, so
  ///   that a dead one does not swallow request after request, as an HTTP/2 connection else would for a quarter of an
  ///   hour.
  mutating func open(_ request: curl_sockaddr, patience: Duration) -> curl_socket_t {
    // Decoder processes must not inherit connections.
    #if canImport(Darwin)
      let socket = Darwin.socket(request.family, request.socktype, request.protocol)
      if socket >= 0 { _ = fcntl(socket, F_SETFD, FD_CLOEXEC) }
    #else
      let closeOnExec = Int32(SOCK_CLOEXEC.rawValue)
      let socket = Glibc.socket(request.family, request.socktype | closeOnExec, request.protocol)
    #endif
    if socket >= 0 {
      opened += 1
      limit(socket, to: patience)
    } else if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) {
      isExhausted = true
    }
    return socket
  }

  private func limit(_ socket: curl_socket_t, to patience: Duration) {
    let milliseconds = max(1, min(patience, .seconds(3600)).millisecondsRoundedUp)
    #if canImport(Darwin)
      var value = Int32((milliseconds + 999) / 1000)
      let option = TCP_RXT_CONNDROPTIME
    #else
      var value = Int32(milliseconds)
      let option = TCP_USER_TIMEOUT
    #endif
    _ = setsockopt(socket, Int32(IPPROTO_TCP), option, &value, socklen_t(MemoryLayout<Int32>.size))
  }
}

/// The wall clock, in Unix seconds.
func secondsSinceEpoch() -> Int { Int(time(nil)) }
