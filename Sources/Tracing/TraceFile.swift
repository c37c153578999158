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

  func write(_ writes: [TracePages.Write]) throws(TraceError) {
    for write in writes {
      var done = 0
      while done < write.bytes.count {
        let count = write.bytes.withUnsafeBytes { bytes in
          pwrite(descriptor, bytes.baseAddress! + done, bytes.count - done, off_t(write.offset) + off_t(done))
        }
        if count < 0 && errno == EINTR { continue }
        guard count > 0 else {
          let error = TraceError(message: String(cString: strerror(count < 0 ? errno : ENOSPC)))
          dropIncompletePage(at: write.offset + Int64(done))
          throw error
        }
        done += count
      }
    }
  }

  /// Shortens the file to complete pages after a failed write, if that was to make it longer.
  private func dropIncompletePage(at end: Int64) {
    var status = stat()
    guard fstat(descriptor, &status) == 0, Int64(status.st_size) == end else { return }
    _ = ftruncate(descriptor, off_t(end) / off_t(TracePages.pageSize) * off_t(TracePages.pageSize))
  }
}
