internal import CCurl

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// What came of the addresses that a hop tried.
struct SocketTally {
  /// Addresses that the policy refused.
  var blocked = 0
  private(set) var opened = 0
  /// The system had no descriptor or no memory for a socket.
  private(set) var isExhausted = false

  mutating func open(_ request: curl_sockaddr) -> curl_socket_t {
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
    } else if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) {
      isExhausted = true
    }
    return socket
  }
}

/// The wall clock, in Unix seconds.
func secondsSinceEpoch() -> Int { Int(time(nil)) }
