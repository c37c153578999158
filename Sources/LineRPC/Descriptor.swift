internal import Platform
internal import Threads

/// An errno.
struct SystemError: Error {
  let number: Int32
}

/// read(2) that waits for input even on a non-blocking descriptor. 0 is the end of the input.
func readInput(_ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Result<Int, SystemError> {
  retrying(descriptor, until: POLLIN) { read(descriptor, buffer.baseAddress, buffer.count) }
}

/// write(2) that waits until something can be written, even on a non-blocking descriptor. It may write less than
/// everything.
func writeOutput(_ descriptor: Int32, _ buffer: UnsafeRawBufferPointer) -> Result<Int, SystemError> {
  retrying(descriptor, until: POLLOUT) { write(descriptor, buffer.baseAddress, buffer.count) }
}

private func retrying(_ descriptor: Int32, until ready: Int32, _ call: () -> Int) -> Result<Int, SystemError> {
  while true {
    let count = call()
    if count >= 0 { return .success(count) }
    switch errno {
    case EINTR: continue
    case EAGAIN, EWOULDBLOCK:
      // The result of poll is ignored: the next call shows whether the descriptor is ready.
      var entry = pollfd(fd: descriptor, events: Int16(ready), revents: 0)
      _ = poll(&entry, 1, -1)
    case let number: return .failure(SystemError(number: number))
    }
  }
}

extension WakeupPipe {
  /// Sleeps until `wake` is called or the reader of `output` is gone.
  ///
  /// A pipe or socket reports that (`POLLERR` or `POLLHUP`), a regular file never does.
  ///
  /// - Returns: nil after `wake`, otherwise the errno that a write would fail with.
  func sleep(watching output: Int32) -> Int32? {
    var entries = [
      pollfd(fd: output, events: 0, revents: 0),
      pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
    ]
    while poll(&entries, 2, -1) < 0, errno == EINTR {}
    if entries[1].revents != 0 { reset() }
    if entries[0].revents & Int16(POLLNVAL) != 0 { return EBADF }
    return entries[0].revents & Int16(POLLERR | POLLHUP) != 0 ? EPIPE : nil
  }
}
