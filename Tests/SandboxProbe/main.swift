internal import CSystem
internal import CodecSandbox
internal import Platform

if CommandLine.arguments.dropFirst().first == "--serve" {
  exit(Hole.serve(CommandLine.argc, CommandLine.unsafeArgv))
}
SandboxProbe.tryAll(behind: CommandLine.arguments.dropFirst().first)

/// Tries from inside the decoder's sandbox what the sandbox must prevent, and prints the result of each attempt.
///
/// With the argument `landlock` or `seccomp`, only that mechanism is active, with `none` nothing. Without an argument
/// all are active, as in the child of a decoder.
enum SandboxProbe {
  static func tryAll(behind lock: String?) {
    #if os(Linux)
      let inForce: [String]
      let before = open("/etc/passwd", O_RDONLY | O_CLOEXEC)
      let parent = getppid()
      switch lock {
      case nil:
        let parts = Sandbox.close(memoryLimit: 1 << 30) {}
        inForce = Sandbox.closeChild(of: parent) ? parts : []
      case "landlock": inForce = Sandbox.noNewPrivileges() && Sandbox.landlock() ? ["landlock"] : []
      case "seccomp":
        let isActive = Sandbox.noNewPrivileges() && Sandbox.seccomp() && Sandbox.closeChild(of: parent)
        inForce = isActive ? ["seccomp"] : []
      case "none": inForce = []
      default: exit(EX_USAGE)
      }
      report("in force", inForce.joined(separator: ","))
      for (name, action) in attempts { report(name, outcome(of: action)) }
      report(
        "read what was open before",
        outcome {
          var byte: UInt8 = 0
          return Int32(read(before, &byte, 1))
        })
    #else
      report("in force", "")
    #endif
  }

  /// `done`, or `refused` with the reason.
  static func outcome(of action: () -> Int32) -> String {
    errno = 0
    let result = action()
    let reason = errno
    return result >= 0 ? "done" : "refused (\(reason))"
  }

  #if os(Linux)
    static let attempts: [(name: String, action: @Sendable () -> Int32)] = [
      ("open a file", { open("/etc/passwd", O_RDONLY | O_CLOEXEC) }),
      ("list a directory", { open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) }),
      ("create a file", { open("/tmp/imageworker-escape", O_RDWR | O_CREAT | O_CLOEXEC, 0o600) }),
      ("open a socket", { socket(AF_INET, streamSocket, 0) }),
      ("connect", { connectSomewhere() }),
      ("run a program", { run("/bin/true") }),
      ("become a program", { becomeNothing() }),
      ("make a process", { makeProcess() }),
      ("trace the parent", { csystem_attach(getppid()) }),
      ("signal the parent", { kill(getppid(), SIGWINCH) }),
      ("reopen itself", { open("/proc/self/mem", O_RDWR | O_CLOEXEC) }),
      ("set a limit", { csystem_limit(Int32(RLIMIT_CORE.rawValue), 0) }),
    ]
  #else
    static let attempts: [(name: String, action: @Sendable () -> Int32)] = []
  #endif

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
      let error = csystem_spawn(&process, path, [nil], [nil], 0, 2)
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
