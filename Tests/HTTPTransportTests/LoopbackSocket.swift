import Platform

/// A socket of the loopback interface that has a port.
struct LoopbackSocket {
  let descriptor: Int32
  let port: UInt16

  /// Nil, with `errno` set, if the port is in use.
  ///
  /// - Parameters:
  ///   - type: `streamSocket`, which listens, or `datagramSocket`.
  ///   - port: 0 for any that is free.
  init?(_ type: Int32, port: UInt16 = 0) {
    descriptor = socket(AF_INET, type, 0)
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    address.sin_port = port.bigEndian
    let isReady = withUnsafeMutablePointer(to: &address) { [descriptor] pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(descriptor, address, length) == 0 && (type != streamSocket || listen(descriptor, 512) == 0)
          && getsockname(descriptor, address, &length) == 0
      }
    }
    self.port = UInt16(bigEndian: address.sin_port)
    if !isReady {
      let reason = errno
      close(descriptor)
      errno = reason
      return nil
    }
  }

  /// A listening socket on any port.
  static func listening() -> LoopbackSocket {
    guard let socket = LoopbackSocket(streamSocket) else {
      fatalError("cannot listen on the loopback interface: \(String(cString: strerror(errno)))")
    }
    return socket
  }
}
