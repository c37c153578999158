internal import CSystem
internal import Platform

/// One decoder process. Used on the pool's thread only.
final class DecoderProcess {
  /// The current activity of the process.
  enum Activity {
    /// The process has not yet announced its formats.
    case starting(until: Instant)
    case idle(since: Instant)
    case busy(Assignment)
  }

  struct Assignment {
    let ticket: DecodeTicket
    let name: StaticString
    let files: TaskFiles
    let started: Instant
    /// The time at which the process is killed.
    var deadline: Instant
    /// Whether the task has been answered already; its result is dropped.
    var isCancelled = false
  }

  let id: pid_t
  /// Its number among the processes that run, from 1.
  let number: Int
  let socket: Int32
  let libraries: DecoderLibraries
  var activity: Activity
  /// A task that crashed another process and must run in this one, which has decoded nothing yet.
  var reserved: DecodeTicket?
  private(set) var decodes = 0
  private var received: [UInt8] = []

  /// Starts the process. It dies with the thread that calls this.
  init(
    number: Int, executable: String, settings: DecoderSettings, libraries: DecoderLibraries,
    now: Instant
  ) throws(DecodeError) {
    var sockets: [Int32] = [-1, -1]
    guard csystem_socket_pair(&sockets) == 0 else {
      throw .unavailable("cannot create a socket for a decoder: \(String(cString: strerror(errno)))")
    }
    defer { close(sockets[1]) }
    var id = pid_t()
    let error = withCStrings([executable, "--serve", "\(settings.memoryLimit)", libraries.rawValue]) { arguments in
      withCStrings(Self.environment) { csystem_spawn(&id, executable, arguments, $0, sockets[1]) }
    }
    guard error == 0 else {
      close(sockets[0])
      throw .unavailable("\(executable) cannot be started: \(String(cString: strerror(error)))")
    }
    (self.id, self.number, self.libraries) = (id, number, libraries)
    socket = sockets[0]
    activity = .starting(until: now.advanced(by: Self.maxStartTime))
    // A decoder that does not read its socket must not block the others.
    _ = csystem_set_nonblocking(socket)
  }

  private static let maxStartTime = Duration.seconds(20)

  /// The environment: few malloc arenas, because there are few threads, and none of the worker's secrets.
  private static var environment: [String] {
    let libraries = getenv("LD_LIBRARY_PATH").map { ["LD_LIBRARY_PATH=\(String(cString: $0))"] } ?? []
    return ["LC_ALL=C", "MALLOC_ARENA_MAX=2"] + libraries
  }

  /// Kills the process. Its resources are released once the system has ended it, see `reap`.
  func kill() {
    _ = sendSignal(id, SIGKILL)
    close(socket)
  }

  /// Sends a request. False if that fails, which means that the process does not work properly.
  func start(_ request: CodecRequest, _ assignment: Assignment) -> Bool {
    let message = request.message.bytes
    let descriptors = assignment.files.descriptors
    let sent = csystem_send(socket, message, message.count, descriptors, Int32(descriptors.count))
    assignment.files.closeInput()
    guard sent == message.count else { return false }
    activity = .busy(assignment)
    decodes += 1
    return true
  }

  enum Reception {
    case nothing
    case reply(CodecReply)
    /// The process has ended.
    case lost
    /// The process has violated the protocol.
    case invalid
  }

  func receive() -> Reception {
    var piece = [UInt8](repeating: 0, count: CodecMessage.maxLength)
    let length = retryingOnInterrupt { read(socket, &piece, piece.count) }
    if length < 0 && errno == EAGAIN { return .nothing }
    guard length > 0 else { return .lost }
    received += piece.prefix(length)
    guard let message = CodecMessage(takenFrom: &received) else {
      return received.count > CodecMessage.maxLength ? .invalid : .nothing
    }
    guard received.isEmpty, let reply = CodecReply(message) else { return .invalid }
    return .reply(reply)
  }

  /// Bytes of memory that the process has allocated, touched or not; 0 if the system does not report it.
  var allocatedBytes: Int {
    let file = open("/proc/\(id)/statm", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return 0 }
    defer { close(file) }
    var text = [UInt8](repeating: 0, count: 128)
    let length = read(file, &text, text.count)
    let fields = String(decoding: text.prefix(max(0, length)), as: UTF8.self).split(separator: " ")
    // The sixth field is data and stack, see proc(5), which is what the memory limit counts.
    return fields.count > 5 ? (Int(fields[5]) ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE))) : 0
  }

  enum Reaping {
    case running
    /// With the status of wait(2); nil if the system does not know it.
    case ended(Int32?)
  }

  /// Reaps a killed process if it has ended.
  static func reap(_ id: pid_t, waits: Bool = false) -> Reaping {
    var status: Int32 = 0
    let result = retryingOnInterrupt { waitpid(id, &status, waits ? 0 : WNOHANG) }
    return result == 0 ? .running : .ended(result > 0 ? status : nil)
  }
}

extension DecoderProcess {
  var isIdle: Bool { if case .idle = activity { true } else { false } }
  var isStarting: Bool { if case .starting = activity { true } else { false } }

  /// The time at which the pool must act if the process does nothing.
  func due(_ settings: DecoderSettings) -> Instant? {
    switch activity {
    case .starting(let until): until
    case .idle(let since): since.advanced(by: settings.idleTime)
    case .busy(let assignment): assignment.deadline
    }
  }
}

/// A separate function, because `kill` inside the type means its own method.
private func sendSignal(_ process: pid_t, _ signal: Int32) -> Int32 { kill(process, signal) }

/// Passes the strings as C arguments: an array of pointers that ends with a null pointer.
private func withCStrings<Result>(
  _ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
) -> Result {
  var pointers = strings.map { strdup($0) } + [nil]
  defer { for pointer in pointers { free(pointer) } }
  return body(&pointers)
}

/// The location of the decoder's executable.
public enum DecoderExecutable {
  public static let name = "imageworker-codec"

  /// The message for a missing decoder.
  public static let missing = "there must be an executable file \(name) beside the worker"

  /// Returns the decoder beside the running executable, whatever that is called. Nil if it does not exist.
  public static func find() -> String? {
    guard let executable = pathOfThisExecutable() ?? pathAtStart(), let slash = executable.lastIndex(of: "/") else {
      return nil
    }
    let path = "\(executable[...slash])\(name)"
    var status = stat()
    let isFile = stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    return isFile && access(path, X_OK) == 0 ? path : nil
  }
}

/// The path by which the system was asked to run this program: what is left where /proc is not mounted.
private func pathAtStart() -> String? {
  #if os(Linux)
    guard let name = csystem_name_at_start(), let path = realpath(name, nil) else { return nil }
    defer { free(path) }
    return String(cString: path)
  #else
    return nil
  #endif
}

/// The libraries and fonts that a decoder process loads before its sandbox closes; none can be loaded later.
///
/// The libraries that few images need would add half to the processor time of each start.
package enum DecoderLibraries: String, Sendable {
  /// The libraries of all formats except HEIC, JPEG XL and SVG.
  case common
  /// The common libraries, libheif, libjxl and the fonts for SVG.
  case all

  package func include(_ other: DecoderLibraries) -> Bool { self == .all || other == .common }
}

extension ImageFormat {
  /// The minimum libraries that a decoder needs to read or write this format.
  package var libraries: DecoderLibraries { [.heic, .jxl, .svg].contains(self) ? .all : .common }
}

extension DecodeTask {
  /// The minimum libraries that a decoder needs for the source and the result.
  var libraries: DecoderLibraries {
    guard case .encoded = output, let written = transform.format?.libraries, written == .all else {
      return header.format.libraries
    }
    return .all
  }
}
