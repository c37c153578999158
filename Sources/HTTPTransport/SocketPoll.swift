internal import CCurl
internal import Threads

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// The sockets that curl waits for, and the sleep of its thread until one of them is ready.
///
/// Curl names its sockets once and is told which of them are ready (`curl_multi_socket_action`), so that it works on
/// those only. `curl_multi_perform` would look at all transfers, with a system call for each.
final class SocketPoll {
  let wakeUp: WakeUp
  /// First the one of `wakeUp`.
  private var entries: [pollfd]
  /// Where the entry of each socket is, by the socket's number; 0 where there is none.
  private var places: [Int] = []
  private var hasReady = false

  /// nil when the system gives no more descriptors.
  init?() {
    guard let wakeUp = WakeUp() else { return nil }
    self.wakeUp = wakeUp
    entries = [pollfd(fd: wakeUp.descriptor, events: Int16(POLLIN), revents: 0)]
  }

  /// Has curl say what it waits for. The poll must live as long as the handle.
  func serve(_ multi: UnsafeMutableRawPointer) {
    let context = Unmanaged.passUnretained(self).toOpaque()
    ccurl_multi_set_socket_callback(
      multi,
      { _, socket, what, context, _ in
        context.map { Unmanaged<SocketPoll>.fromOpaque($0).takeUnretainedValue().watch(socket, for: what) }
        return 0
      }, context)
  }

  /// Sleeps until a socket is ready, somebody wakes the thread, or the time has passed; curl's own time counts as well.
  func sleep(for multi: UnsafeMutableRawPointer, milliseconds: Int32) {
    let milliseconds = Self.timeLeft(multi).map { min(milliseconds, $0) } ?? milliseconds
    let count = poll(&entries, nfds_t(entries.count), milliseconds)
    if count < 0, errno != EINTR {
      // Out of memory or descriptors. Others may free some; a loop that does not sleep would not help them.
      usleep(10_000)
    }
    if count > 0, entries[0].revents != 0 { wakeUp.reset() }
    hasReady = count > (entries[0].revents == 0 ? 0 : 1)
  }

  /// Tells curl what the sleep has brought.
  ///
  /// - Parameter beginCall: called before each call into curl.
  func tell(_ multi: UnsafeMutableRawPointer, beginCall: () -> Void) {
    var running: Int32 = 0
    if hasReady {
      hasReady = false
      for entry in entries.dropFirst() where entry.revents != 0 {
        // Curl may have closed it while it worked for another.
        guard place(of: entry.fd) != 0 else { continue }
        beginCall()
        curl_multi_socket_action(multi, entry.fd, Self.readiness(entry), &running)
      }
    }
    if Self.timeLeft(multi) == 0 {
      beginCall()
      curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running)
    }
  }

  /// Until curl has something to do that no socket tells of, in milliseconds; nil where there is nothing. Asked for
  /// rather than told: some versions of curl do not say each change.
  private static func timeLeft(_ multi: UnsafeMutableRawPointer) -> Int32? {
    var milliseconds = 0
    guard curl_multi_timeout(multi, &milliseconds) == CURLM_OK, milliseconds >= 0 else { return nil }
    return Int32(clamping: milliseconds)
  }

  private func place(of socket: curl_socket_t) -> Int {
    places.indices.contains(Int(socket)) ? places[Int(socket)] : 0
  }

  private func watch(_ socket: curl_socket_t, for what: Int32) {
    guard socket >= 0 else { return }
    let place = place(of: socket)
    guard what != CURL_POLL_REMOVE else { return remove(socket, at: place) }
    let events = Int16((what & CURL_POLL_IN != 0 ? POLLIN : 0) | (what & CURL_POLL_OUT != 0 ? POLLOUT : 0))
    if place != 0 {
      entries[place].events = events
    } else {
      if places.count <= socket { places += repeatElement(0, count: Int(socket) + 1 - places.count) }
      places[Int(socket)] = entries.count
      entries.append(pollfd(fd: socket, events: events, revents: 0))
    }
  }

  /// The last entry takes its place.
  private func remove(_ socket: curl_socket_t, at place: Int) {
    guard place != 0, let last = entries.popLast() else { return }
    places[Int(socket)] = 0
    guard last.fd != socket else { return }
    entries[place] = last
    places[Int(last.fd)] = place
  }

  /// As `curl_multi_perform` reads what poll(2) says.
  private static func readiness(_ entry: pollfd) -> Int32 {
    let (events, returned) = (Int32(entry.events), Int32(entry.revents))
    let isBroken = returned & (POLLERR | POLLHUP) != 0
    var readiness: Int32 = 0
    if returned & POLLIN != 0 || isBroken && events & POLLIN != 0 { readiness |= CURL_CSELECT_IN }
    if returned & POLLOUT != 0 { readiness |= CURL_CSELECT_OUT }
    if returned & POLLNVAL != 0 || isBroken && events & POLLOUT != 0 { readiness |= CURL_CSELECT_ERR }
    return readiness
  }
}
