internal import CCurl
internal import Platform
internal import Threads

/// An owner of sockets that are watched together with curl's.
protocol SocketOwner: AnyObject {
  /// Called by `SocketPoll.reportReady`. A socket with an error is reported as readable and writable.
  func ready(_ socket: Int32, isReadable: Bool, isWritable: Bool)
}

/// The sockets for which curl and other owners wait, and the poll in which the thread sleeps.
///
/// Curl registers its sockets once and learns which of them are ready (`curl_multi_socket_action`), so that it works
/// on those only. `curl_multi_perform` would look at all transfers, with a system call for each.
final class SocketPoll {
  private struct Owner {
    unowned let owner: any SocketOwner
  }

  let wakeUp: WakeupPipe
  /// The first entry is that of `wakeUp`.
  private var entries: [pollfd]
  /// The index of each socket's entry, by the socket's number; 0 for none.
  private var entryIndices: [Int] = []
  /// The owners of the sockets that are not curl's. An owner must close its sockets before it is released.
  private var owners: [Int32: Owner] = [:]
  private var hasReady = false

  /// Fails if the system has no descriptor left.
  init?() {
    guard let wakeUp = WakeupPipe() else { return nil }
    self.wakeUp = wakeUp
    entries = [pollfd(fd: wakeUp.descriptor, events: Int16(POLLIN), revents: 0)]
  }

  /// Makes curl report the sockets for which it waits. The poll must live as long as the handle.
  func serve(_ multi: UnsafeMutableRawPointer) {
    let context = Unmanaged.passUnretained(self).toOpaque()
    ccurl_multi_set_socket_callback(
      multi,
      { _, socket, what, context, _ in
        context.map { Unmanaged<SocketPoll>.fromOpaque($0).takeUnretainedValue().curlWatches(socket, for: what) }
        return 0
      }, context)
  }

  /// Sleeps until a socket is ready, the thread is woken, the time has passed, or curl's own timer has fired.
  func sleep(for multi: UnsafeMutableRawPointer, milliseconds: Int32) {
    let milliseconds = Self.timeLeft(multi).map { min(milliseconds, $0) } ?? milliseconds
    let count = poll(&entries, nfds_t(entries.count), milliseconds)
    if count < 0, errno != EINTR {
      // Out of memory or descriptors. Others may free some; a loop that does not sleep would hinder them.
      usleep(10_000)
    }
    if count > 0, entries[0].revents != 0 { wakeUp.reset() }
    hasReady = count > (entries[0].revents == 0 ? 0 : 1)
  }

  /// Reports the sockets that became ready to curl and to the other owners.
  ///
  /// - Parameter beginCall: called before each call into curl.
  func reportReady(_ multi: UnsafeMutableRawPointer, beginCall: () -> Void) {
    var running: Int32 = 0
    if hasReady {
      hasReady = false
      for entry in entries.dropFirst() where entry.revents != 0 {
        // A call for an earlier entry may have closed it.
        guard entryIndex(of: entry.fd) != 0 else { continue }
        if let owner = owners[entry.fd]?.owner {
          let isBroken = Int32(entry.revents) & (POLLERR | POLLHUP | POLLNVAL) != 0
          owner.ready(
            entry.fd, isReadable: isBroken || Int32(entry.revents) & POLLIN != 0,
            isWritable: isBroken || Int32(entry.revents) & POLLOUT != 0)
          continue
        }
        beginCall()
        curl_multi_socket_action(multi, entry.fd, Self.readiness(entry), &running)
      }
    }
    if Self.timeLeft(multi) == 0 {
      beginCall()
      curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running)
    }
  }

  /// Milliseconds until curl's next timer; nil if there is none. Curl is polled for it, since some versions do not call
  /// the timer callback for each change.
  private static func timeLeft(_ multi: UnsafeMutableRawPointer) -> Int32? {
    var milliseconds = 0
    guard curl_multi_timeout(multi, &milliseconds) == CURLM_OK, milliseconds >= 0 else { return nil }
    return Int32(clamping: milliseconds)
  }

  private func entryIndex(of socket: curl_socket_t) -> Int {
    entryIndices.indices.contains(Int(socket)) ? entryIndices[Int(socket)] : 0
  }

  private func curlWatches(_ socket: curl_socket_t, for what: Int32) {
    let isWatched = what != CURL_POLL_REMOVE
    let events = (what & CURL_POLL_IN != 0 ? POLLIN : 0) | (what & CURL_POLL_OUT != 0 ? POLLOUT : 0)
    watch(socket, for: isWatched ? events : nil)
  }

  /// Watches a socket that is not curl's. Stops watching it if it is neither for reading nor for writing.
  func watch(_ socket: Int32, reading: Bool, writing: Bool, for owner: any SocketOwner) {
    let isWatched = reading || writing
    owners[socket] = isWatched ? Owner(owner: owner) : nil
    watch(socket, for: isWatched ? (reading ? POLLIN : 0) | (writing ? POLLOUT : 0) : nil)
  }

  /// - Parameter events: as in poll(2); nil stops watching.
  private func watch(_ socket: Int32, for events: Int32?) {
    guard socket >= 0 else { return }
    let index = entryIndex(of: socket)
    guard let events = events.map({ Int16($0) }) else { return remove(socket, at: index) }
    if index != 0 {
      entries[index].events = events
    } else {
      if entryIndices.count <= socket { entryIndices += repeatElement(0, count: Int(socket) + 1 - entryIndices.count) }
      entryIndices[Int(socket)] = entries.count
      entries.append(pollfd(fd: socket, events: events, revents: 0))
    }
  }

  /// Removes an entry. The last entry takes its index.
  private func remove(_ socket: curl_socket_t, at index: Int) {
    guard index != 0, let last = entries.popLast() else { return }
    entryIndices[Int(socket)] = 0
    guard last.fd != socket else { return }
    entries[index] = last
    entryIndices[Int(last.fd)] = index
  }

  /// Converts the result of poll(2) as `curl_multi_perform` does.
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
