internal import CCurl
internal import CTLS
internal import Platform

/// The connections that curl has open, as reported by its callbacks. Must outlive every connection.
final class Connections {
  private var sockets = OpenSockets()
  private var serviceTime = ServiceTime()
  /// Connections that were ended because they held the thread for too long.
  private var ended: Set<ServiceTime.Connection> = []
  private let recordWatch = UnsafeMutablePointer<ctls_record_watch>.allocate(capacity: 1)

  init() {
    let context = Unmanaged.passUnretained(self).toOpaque()
    recordWatch.initialize(
      to: ctls_record_watch(
        callback: { ssl, context in
          guard let ssl, let connections = Connections.behind(context) else { return }
          connections.recordBegins(on: ssl)
        }, context: context))
  }

  deinit { recordWatch.deallocate() }

  private static func behind(_ context: UnsafeMutableRawPointer?) -> Connections? {
    context.map { Unmanaged<Connections>.fromOpaque($0).takeUnretainedValue() }
  }

  // MARK: Sockets

  /// The number of open sockets.
  var count: Int { sockets.count }

  func opened(_ socket: curl_socket_t) { sockets.insert(socket) }

  func socket(of ends: ConnectionEnds) -> curl_socket_t? { sockets.socket(of: ends) }

  /// Whether unrequested input has arrived on an HTTP/1 connection, or the peer has closed it. Such input could not be
  /// distinguished from the next answer.
  ///
  /// TLS messages count as well: a session ticket that arrives after the first answer costs the connection.
  func hasUnread(_ socket: curl_socket_t, _ tls: TLSConnection?) -> Bool {
    if tls?.hasUnread == true { return true }
    var byte: UInt8 = 0
    let count = recv(socket, &byte, 1, peekFlags)
    return count >= 0 || errno != EAGAIN && errno != EWOULDBLOCK
  }

  // MARK: Time

  /// Must be called before each call that lets curl read.
  func beginCall() { serviceTime.beginCall() }

  /// Whether the thread has served this handle for too long since `beginCall`.
  func isServedTooLong(_ easy: UnsafeMutableRawPointer) -> Bool {
    serviceTime.isTooLong(for: easy, now: .now, processorTime: processorTimeOfThread)
  }

  /// The error of a transfer whose connection was ended for holding the thread; nil for any other.
  func error(of transfer: Transfer) -> TransferError? {
    guard !ended.isEmpty, let connection = transfer.connection?.tls, ended.contains(connection) else { return nil }
    return transfer.flood
  }

  /// Removes the ended connections that no transfer uses any more.
  func removeEnded(except transfers: some Sequence<Transfer>) {
    guard !ended.isEmpty else { return }
    ended.formIntersection(transfers.compactMap(\.connection?.tls))
  }

  private func recordBegins(on ssl: UnsafeMutableRawPointer) {
    let isTooLong = serviceTime.isTooLong(for: ssl, now: .now, processorTime: processorTimeOfThread)
    guard isTooLong, ended.insert(ssl).inserted else { return }
    ctls_end_input(ssl)
  }

  // MARK: Curl's callbacks

  /// Registers the callbacks that report a handle's connections.
  func watch(_ easy: UnsafeMutableRawPointer) {
    let context = Unmanaged.passUnretained(self).toOpaque()
    _ = ccurl_set_close_socket_callback(
      easy,
      { context, socket in
        Connections.behind(context)?.sockets.remove(socket)
        return close(socket)
      }, context)
    guard TLSConnection.isKnown else { return }
    _ = ccurl_set_tls_context_callback(
      easy,
      { _, tlsContext, context in
        if let connections = Connections.behind(context) {
          ctls_watch_records(tlsContext, connections.recordWatch)
        }
        return CURLE_OK
      }, context)
  }
}

private func processorTimeOfThread() -> Duration {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}

/// Limits on curl's connections, idle ones included. They fall when the system has no descriptor for one more
/// connection.
struct ConnectionLimits: Equatable {
  /// The configured limit, in force while descriptors last.
  let configuredMax: Int
  /// Largest number of connections. One more closes an idle one; if all are in use, the transfer waits until another
  /// has ended.
  private(set) var open: Int
  /// Largest number of connections to keep after a transfer has ended. Above it, an idle one is closed.
  private(set) var kept: Int
  private var transfersEnded = 0

  init(max configuredMax: Int) {
    self.configuredMax = Swift.max(1, configuredMax)
    (open, kept) = (self.configuredMax, self.configuredMax)
  }

  /// Lowers the limits after the system had no descriptor for one more. Some of the descriptors that are left are
  /// needed for files.
  ///
  /// - Parameter count: the number of open sockets.
  mutating func lower(count: Int) {
    open = max(1, min(count * 7 / 8, open - 1))
    kept = max(1, min(count / 2, kept))
  }

  /// Raises the limits after a transfer has ended, so that its connection is closed or idle. `open` rises at once, for
  /// waiting transfers. `kept` rises slowly, so that idle connections seldom take the last descriptors again.
  mutating func raise() {
    guard kept < configuredMax else { return }
    open = min(configuredMax, open + 1)
    transfersEnded += 1
    if transfersEnded.isMultiple(of: 64) { kept += 1 }
  }
}

/// An empty connection share, in which curl looks for the last connection of an ended handle.
///
/// `curl_multi_remove_handle` searches all open connections for the handle's last one, to close it if it was made with
/// CURLOPT_CONNECT_ONLY. With thousands of open connections that costs more than the rest of a load. Curl does not
/// search for a connection that CURLINFO_ACTIVESOCKET did not find (`Curl_getconnectinfo` in connect.c).
final class EmptyConnectionCache {
  private let share: UnsafeMutableRawPointer

  /// Fails if memory is short.
  init?() {
    guard let share = curl_share_init() else { return nil }
    self.share = share
    _ = ccurl_share(share, CURL_LOCK_DATA_CONNECT)
  }

  deinit { curl_share_cleanup(share) }

  /// Detaches a handle from its last connection.
  ///
  /// - Parameter easy: a handle whose transfer has ended, still in its multi handle. It cannot be used again.
  func detachConnection(of easy: UnsafeMutableRawPointer) {
    var socket = CURL_SOCKET_BAD
    _ = ccurl_set_pointer(easy, CURLOPT_SHARE, share)
    _ = ccurl_get_socket(easy, CURLINFO_ACTIVESOCKET, &socket)
  }
}
