internal import CSystem
internal import CodecSandbox
internal import Platform

SandboxProbe.tryAll(behind: CommandLine.arguments.dropFirst().first)

/// Tries from inside the decoder's sandbox what the sandbox must prevent, and prints the result of each attempt.
///
/// With the argument `landlock` or `seccomp`, only that mechanism is active, with `none` nothing. Without an argument
/// all are active, as in the child of a decoder.
enum SandboxProbe {
  static func tryAll(behind lock: String?) {
    #if os(Linux)
      let parent = getppid()
      let before = open("/etc/passwd", O_RDONLY | O_CLOEXEC)
      let inForce: [String]
      switch lock {
      case nil:
        let parts = Sandbox.close(memoryLimit: 1 << 30) {}
        inForce = Sandbox.closeChild(of: parent) ? parts : []
      case "landlock": inForce = Sandbox.noNewPrivileges() && Sandbox.landlock() ? ["landlock"] : []
      case "seccomp":
        inForce = Sandbox.noNewPrivileges() && Sandbox.seccomp() && Sandbox.closeChild(of: parent) ? ["seccomp"] : []
      case "none": inForce = []
      default: exit(EX_USAGE)
      }
      report("in force", inForce.joined(separator: ","))
      attempt("open a file") { open("/etc/passwd", O_RDONLY | O_CLOEXEC) }
      attempt("list a directory") { open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
      attempt("create a file") { open("/tmp/imageworker-escape", O_RDWR | O_CREAT | O_CLOEXEC, 0o600) }
      attempt("open a socket") { socket(AF_INET, streamSocket, 0) }
      attempt("connect") { connectSomewhere() }
      attempt("run a program") { run("/bin/true") }
      attempt("become a program") { becomeNothing() }
      attempt("make a process") { makeProcess() }
      attempt("trace the parent") { csystem_attach(parent) }
      attempt("signal the parent") { kill(parent, SIGWINCH) }
      attempt("reopen itself") { open("/proc/self/mem", O_RDWR | O_CLOEXEC) }
      attempt("set a limit") { csystem_limit(Int32(RLIMIT_CORE.rawValue), 0) }
      attempt("read what was open before") {
        var byte: UInt8 = 0
        return Int32(read(before, &byte, 1))
      }
    #else
      report("in force", "")
    #endif
  }

  /// Prints one line: the name of the attempt, and `done` or `refused` with the reason.
  private static func attempt(_ name: String, _ action: () -> Int32) {
    errno = 0
    let result = action()
    let reason = errno
    report(name, result >= 0 ? "done" : "refused (\(reason))")
  }

  private static func report(_ name: String, _ outcome: String) {
    let line = "\(name): \(outcome)\n"
    _ = write(1, line, line.utf8.count)
  }

  #if os(Linux)
    private static func connectSomewhere() -> Int32 {
      let file = socket(AF_INET, streamSocket | Int32(SOCK_NONBLOCK.rawValue), 0)
      guard file >= 0 else { return -1 }
      defer { close(file) }
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = in_port_t(9).bigEndian
      address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
      let result = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(file, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
      // A refused or pending connection is an answer of the network: the sandbox did not prevent it.
      return result < 0 && (errno == ECONNREFUSED || errno == EINPROGRESS) ? 0 : result
    }

    private static func run(_ path: String) -> Int32 {
      var process = pid_t()
      let error = csystem_spawn(&process, path, [nil], [nil], 0)
      guard error == 0 else {
        errno = error
        return -1
      }
      return waitpid(process, nil, 0)
    }

    /// Executes a program that does not exist; the lookup alone proves that execution is possible.
    private static func becomeNothing() -> Int32 {
      var nothing: [UnsafeMutablePointer<CChar>?] = [nil]
      execve("/nonexistent/program", &nothing, &nothing)
      return errno == ENOENT ? 0 : -1
    }

    private static func makeProcess() -> Int32 {
      let process = csystem_fork()
      if process == 0 { _exit(0) }
      return process < 0 ? -1 : waitpid(process, nil, 0)
    }
  #endif
}
