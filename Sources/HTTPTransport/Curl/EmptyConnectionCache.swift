internal import CCurl

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
