internal import CCurl
internal import Platform
internal import Threads

/// Outcomes of the connection attempts of a hop.
struct ConnectionAttempts {
  /// Number of addresses that the policy refused.
  var blocked = 0
  private(set) var opened = 0
  /// Whether the system had no descriptor or no memory for a socket.
  private(set) var isExhausted = false

  /// - Parameter acknowledgementTimeout: how long sent data may stay unacknowledged before the connection breaks.
  ///   Without it, a dead HTTP/2 connection would swallow requests for a quarter of an hour.
  mutating func open(_ request: curl_sockaddr, acknowledgementTimeout: Duration) -> curl_socket_t {
    // Decoder processes must not inherit connections.
    let socket = openSocket(request.family, request.socktype, request.protocol)
    if socket >= 0 {
      opened += 1
      let milliseconds = max(1, min(acknowledgementTimeout, .seconds(3600)).millisecondsRoundedUp)
      limitRetransmission(of: socket, milliseconds: milliseconds)
    } else if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) {
      isExhausted = true
    }
    return socket
  }
}

/// The wall clock, in Unix seconds.
func secondsSinceEpoch() -> Int { Int(time(nil)) }
