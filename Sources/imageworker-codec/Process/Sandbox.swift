internal import CSystem
internal import ImageCodec
internal import Platform

/// The restrictions that the process applies to itself before it reads the first byte of an image.
enum Sandbox {
  /// Bytes of memory that the process may have; `Int.max` without a limit.
  private(set) nonisolated(unsafe) static var memoryLimit = Int.max  // set once, before there is a second thread

  /// Starts libvips, so that nothing must be opened later, then applies the restrictions.
  ///
  /// - Returns: the active mechanisms. A mechanism that the system lacks is skipped.
  static func close(libraries: DecoderLibraries, memoryLimit: Int?) -> [String] {
    var inForce: [String] = []
    // First, because a worker that ends from now on is noticed at the other end of the socket.
    _ = csystem_die_with_parent()
    if noNewPrivileges() { inForce.append("noNewPrivileges") }
    // Before the library starts, because its threads keep the restrictions that they start with.
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

  /// Denies file system access, TCP and signals to other processes, for this thread and those that it starts.
  static func landlock() -> Bool { csystem_landlock(0) == 0 }

  /// Permits only the system calls that decoding needs, for all threads.
  static func seccomp() -> Bool { csystem_seccomp() == 0 }
}
