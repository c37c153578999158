internal import CSystem

/// The restrictions that a decoder process applies to itself before it reads the first byte of an image.
public enum Sandbox {
  /// Bytes of memory that the process may have; `Int.max` without a limit.
  public private(set) nonisolated(unsafe) static var memoryLimit = Int.max  // set once, before there is a second thread

  /// Loads libraries, since no file can be opened later, then applies the restrictions.
  ///
  /// - Parameters:
  ///   - memoryLimit: bytes; nil or 0 for no limit.
  ///   - loadLibraries: may read files and start threads, but not write files.
  /// - Returns: the active mechanisms. A mechanism that the system lacks is skipped.
  public static func close(memoryLimit: Int?, loadLibraries: () -> Void) -> [String] {
    var inForce: [String] = []
    // First, because a worker that ends from now on is noticed at the other end of the socket.
    _ = csystem_die_with_parent()
    if noNewPrivileges() { inForce.append("noNewPrivileges") }
    // Before the libraries start threads, because threads keep the restrictions that they start with.
    _ = csystem_landlock(1)
    loadLibraries()
    if let memoryLimit, memoryLimit > 0 { self.memoryLimit = memoryLimit }
    if csystem_limit_resources(UInt64(max(0, memoryLimit ?? 0))) == 0 { inForce.append("rlimits") }
    _ = csystem_not_dumpable()
    if landlock() { inForce.append("landlock") }
    if seccomp() { inForce.append("seccomp") }
    return inForce
  }

  public static func noNewPrivileges() -> Bool { csystem_no_new_privileges() == 0 }

  /// Denies file system access, TCP and signals to other processes, for this thread and those that it starts.
  public static func landlock() -> Bool { csystem_landlock(0) == 0 }

  /// Permits only the system calls that decoding needs, for all threads.
  public static func seccomp() -> Bool { csystem_seccomp() == 0 }
}
