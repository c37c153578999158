internal import Platform
internal import Threads

/// An errno.
public struct SystemError: Error {
  public let number: Int32
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

/// Writes all bytes, even to a non-blocking descriptor.
public func writeAll(_ bytes: [UInt8], to descriptor: Int32) throws(SystemError) {
  var rest = bytes[...]
  while !rest.isEmpty { rest = rest.dropFirst(try rest.withUnsafeBytes { writeOutput(descriptor, $0) }.get()) }
}

private func retrying(_ descriptor: Int32, until ready: Int32, _ call: () -> Int) -> Result<Int, SystemError> {
  while true {
    let count = retryingOnInterrupt(call)
    if count >= 0 { return .success(count) }
    switch errno {
    case EAGAIN, EWOULDBLOCK:
      // The result of poll is ignored: the next call shows whether the descriptor is ready.
      var entry = pollfd(fd: descriptor, events: Int16(ready), revents: 0)
      _ = poll(&entry, 1, -1)
    case let number: return .failure(SystemError(number: number))
    }
  }
}

/// How to write to a descriptor without waiting.
enum OutputKind {
  case pipe, socket
  /// A file or a terminal, to which only the writer's thread writes.
  case other

  /// Bytes for which a pipe that is ready for writing has room (PIPE_BUF in POSIX).
  static let room = 4096

  init(of descriptor: Int32) {
    var status = stat()
    let mode = fstat(descriptor, &status) == 0 ? status.st_mode & S_IFMT : 0
    self = mode == S_IFIFO ? .pipe : mode == S_IFSOCK ? .socket : .other
  }

  /// Whether `room` bytes or fewer can be passed to `writeAtOnce`.
  func hasRoom(_ descriptor: Int32) -> Bool {
    guard self == .pipe else { return self == .socket }
    var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    return poll(&entry, 1, 0) == 1 && entry.revents == Int16(POLLOUT)
  }

  /// Writes what can be written now. Returns the number of bytes written; 0 after a failure.
  func writeAtOnce(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
    let count =
      self == .socket
      ? send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT))
      : write(descriptor, bytes.baseAddress, bytes.count)
    return max(count, 0)
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
    _ = retryingOnInterrupt { poll(&entries, 2, -1) }
    if entries[1].revents != 0 { reset() }
    if entries[0].revents & Int16(POLLNVAL) != 0 { return EBADF }
    return entries[0].revents & Int16(POLLERR | POLLHUP) != 0 ? EPIPE : nil
  }
}
