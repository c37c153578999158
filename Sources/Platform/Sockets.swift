#if canImport(Darwin)
  public let streamSocket = SOCK_STREAM
  public let datagramSocket = SOCK_DGRAM
  /// Flags of recv(2): look at the bytes without taking them, and without waiting.
  public let peekFlags = MSG_PEEK | MSG_DONTWAIT
  /// The flag of send(2) that fails with EPIPE instead of raising SIGPIPE. Darwin has a socket option for that instead.
  public let noSignalFlag: Int32 = 0
#else
  public let streamSocket = Int32(SOCK_STREAM.rawValue)
  public let datagramSocket = Int32(SOCK_DGRAM.rawValue)
  public let peekFlags = Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)
  public let noSignalFlag = Int32(MSG_NOSIGNAL)
#endif

/// Opens a socket that child processes do not inherit.
///
/// - Returns: the descriptor, or -1 with `errno` set, as socket(2).
public func openSocket(_ family: Int32, _ type: Int32, _ protocol: Int32 = 0) -> Int32 {
  #if canImport(Darwin)
    let descriptor = socket(family, type, `protocol`)
    if descriptor >= 0 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    return descriptor
  #else
    return socket(family, type | Int32(SOCK_CLOEXEC.rawValue), `protocol`)
  #endif
}

/// Limits the time for which TCP sends data again that is not acknowledged (TCP_USER_TIMEOUT, RFC 5482).
public func limitRetransmission(of descriptor: Int32, milliseconds: Int64) {
  #if canImport(Darwin)
    var value = Int32(clamping: (milliseconds + 999) / 1000)
    let option = TCP_RXT_CONNDROPTIME
  #else
    var value = Int32(clamping: milliseconds)
    let option = TCP_USER_TIMEOUT
  #endif
  _ = setsockopt(descriptor, Int32(IPPROTO_TCP), option, &value, socklen_t(MemoryLayout<Int32>.size))
}

/// Whether a status of getaddrinfo(3) means that it is certain that the name has no address.
public func isNoAddress(_ status: Int32) -> Bool {
  #if canImport(Darwin)
    let noData = EAI_NODATA
  #else
    // EAI_NODATA, which glibc defines for _GNU_SOURCE only. Musl does not use it.
    let noData: Int32 = -5
  #endif
  return status == EAI_NONAME || status == noData
}
