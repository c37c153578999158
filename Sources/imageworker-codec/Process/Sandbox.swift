internal import CSystem
internal import ImageCodec
internal import Platform

/// What the process gives up before it sees the first byte of an image.
enum Sandbox {
  /// Bytes that the process may have; `Int.max` where there is no limit.
  private(set) nonisolated(unsafe) static var memoryLimit = Int.max  // set once, before there is a second thread

  /// Starts libvips, so that nothing needs to be opened later, and closes the door.
  ///
  /// - Returns: what is in force. Where the system lacks something, it is done without.
  static func close(libraries: DecoderLibraries, memoryLimit: Int?) -> [String] {
    var inForce: [String] = []
    // Before anything else: a worker that dies now is noticed at the other end of the socket.
    _ = csystem_die_with_parent()
    if noNewPrivileges() { inForce.append("noNewPrivileges") }
    // Threads keep what they have when they start, and the library starts some.
    _ = csystem_landlock(1)
    Library.start(libraries)
    if let memoryLimit, memoryLimit > 0 { self.memoryLimit = memoryLimit }
    if csystem_limit_resources(UInt64(max(0, memoryLimit ?? 0))) == 0 { inForce.append("rlimits") }
    _ = csystem_not_dumpable()
    if landlock() { inForce.append("landlock") }
    if seccomp() { inForce.append("seccomp") }
    return inForce
  }

  static func noNewPrivileges() -> Bool { csystem_no_new_privileges() == 0 }

  /// Nothing in the file system, no TCP, no signals to others: for this thread and those it starts.
  static func landlock() -> Bool { csystem_landlock(0) == 0 }

  /// Only the system calls that decoding needs, for all threads.
  static func seccomp() -> Bool { csystem_seccomp() == 0 }
}
