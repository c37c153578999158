internal import CCurl
internal import Platform
internal import Threads

/// The two ends of a TCP connection, in curl's notation.
struct ConnectionEnds: Hashable {
  var localAddress: String
  var localPort: UInt16
  var peerAddress: String
  var peerPort: UInt16
}

/// The sockets that curl has open, by the ends of their connections.
///
/// Curl tells a transfer the ends of its connection, but not the socket: CURLINFO_ACTIVESOCKET returns the connection
/// of the previous request.
struct OpenSockets {
  private var sockets: [curl_socket_t: ConnectionEnds?] = [:]
  private var byEnds: [ConnectionEnds: curl_socket_t] = [:]
  /// Sockets whose ends are not known yet.
  private var unnamed: [curl_socket_t] = []

  var count: Int { sockets.count }

  mutating func insert(_ socket: curl_socket_t) {
    sockets[socket] = .some(nil)
    unnamed.append(socket)
  }

  mutating func remove(_ socket: curl_socket_t) {
    if let ends = sockets.removeValue(forKey: socket), let ends { byEnds[ends] = nil }
    unnamed.removeAll { $0 == socket }
  }

  /// The socket of a connection; nil if the system writes its ends in another way than curl.
  mutating func socket(of ends: ConnectionEnds) -> curl_socket_t? {
    if let socket = byEnds[ends] { return socket }
    unnamed.removeAll { socket in
      // A socket that is not connected yet has no peer.
      guard let local = Self.end(of: socket, getsockname), let peer = Self.end(of: socket, getpeername) else {
        return false
      }
      let ends = ConnectionEnds(
        localAddress: local.address, localPort: local.port, peerAddress: peer.address, peerPort: peer.port)
      sockets[socket] = ends
      byEnds[ends] = socket
      return true
    }
    return byEnds[ends]
  }

  private typealias Name = (Int32, UnsafeMutablePointer<sockaddr>?, UnsafeMutablePointer<socklen_t>?) -> Int32

  private static func end(of socket: curl_socket_t, _ name: Name) -> (address: String, port: UInt16)? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &storage) { storage in
      storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        guard name(socket, address, &length) == 0, let end = IPAddress(address) else { return nil }
        // The port has the same place in the addresses of both families.
        let port = address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { $0.pointee.sin_port }
        return (end.text, UInt16(bigEndian: port))
      }
    }
  }
}

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
