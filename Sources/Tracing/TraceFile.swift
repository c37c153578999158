internal import Platform

/// An error of a trace's file, as one sentence without the path.
public struct TraceError: Error, Sendable {
  public let message: String
}

/// The file of a trace. Locked, so that two processes do not write one file.
struct TraceFile: ~Copyable {
  private let descriptor: Int32

  /// Opens the file. Overwrites an earlier trace, but no other file.
  init(_ path: String) throws(TraceError) {
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0o600)
    guard descriptor >= 0 else { throw TraceError(message: String(cString: strerror(errno))) }
    if let problem = Self.claim(descriptor) {
      close(descriptor)
      throw TraceError(message: problem)
    }
    self.descriptor = descriptor
  }

  /// Returns the reason why the file cannot be used.
  private static func claim(_ descriptor: Int32) -> String? {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return String(cString: strerror(errno)) }
    guard status.st_mode & S_IFMT == S_IFREG else { return "it is not a regular file" }
    guard status.st_size == 0 || isTrace(descriptor) else { return "it exists and is not a trace" }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      return errno == EWOULDBLOCK ? "another process is writing a trace to it" : String(cString: strerror(errno))
    }
    return ftruncate(descriptor, 0) == 0 ? nil : String(cString: strerror(errno))
  }

  private static func isTrace(_ descriptor: Int32) -> Bool {
    var bytes = [UInt8](repeating: 0, count: TraceOutput.beginning.count)
    return pread(descriptor, &bytes, bytes.count, 0) == bytes.count && bytes == TraceOutput.beginning
  }

  deinit { close(descriptor) }

  /// Writes bytes, the last of which are the `tail` of the file. After a failure, the file ends with the earlier events.
  func write(_ write: TracePages.Write) throws(TraceError) {
    var done = 0
    while done < write.bytes.count {
      let count = write.bytes.withUnsafeBytes { bytes in
        retryingOnInterrupt {
          pwrite(descriptor, bytes.baseAddress! + done, bytes.count - done, off_t(write.offset) + off_t(done))
        }
      }
      guard count > 0 else {
        let error = TraceError(message: String(cString: strerror(count < 0 ? errno : ENOSPC)))
        // The format allows an array without its closing bracket.
        _ = ftruncate(descriptor, off_t(write.offset))
        throw error
      }
      done += count
    }
  }
}
