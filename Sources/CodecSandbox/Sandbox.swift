internal import CSystem
internal import Platform

/// The restrictions that a decoder applies to itself: the parent with `close`, after it has loaded the libraries, and
/// each child with `closeChild`, before it reads the first byte of an image.
public enum Sandbox {
  /// Bytes of memory that the process may have; `Int.max` without a limit.
  public private(set) nonisolated(unsafe) static var memoryLimit = Int.max  // set once, before there is a second thread

  private static nonisolated(unsafe) var isFiltered = false  // set once, before there is a child

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
    isFiltered = seccomp()
    if isFiltered { inForce.append("seccomp") }
    return inForce
  }

  /// Adds the restrictions of a child: it is killed with its parent, and cannot start or signal another process.
  ///
  /// - Returns: false if the parent has ended already, or if a restriction that its parent has cannot be made complete.
  public static func closeChild(of parent: Int32) -> Bool {
    _ = csystem_die_with_parent()
    return getppid() == parent && (csystem_seccomp_child() == 0 || !isFiltered)
  }

  public static func noNewPrivileges() -> Bool { csystem_no_new_privileges() == 0 }

  /// Denies file system access, TCP and signals to other processes, for this thread and those that it starts.
  public static func landlock() -> Bool { csystem_landlock(0) == 0 }

  /// Permits only the system calls that decoding needs, and those that a parent of decoding processes needs.
  public static func seccomp() -> Bool { csystem_seccomp() == 0 }
}
