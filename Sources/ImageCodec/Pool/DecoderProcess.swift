internal import CSystem
internal import Platform

/// One decoder process, as the pool's thread sees it.
final class DecoderProcess {
  /// What it does now.
  enum Activity {
    /// Until it says what it can.
    case starting(until: ContinuousClock.Instant)
    case idle(since: ContinuousClock.Instant)
    case busy(Assignment)
  }

  struct Assignment {
    let ticket: DecodeTicket
    let files: TaskFiles
    let started: ContinuousClock.Instant
    /// Then it is killed.
    var deadline: ContinuousClock.Instant
    /// Answered already: whatever comes of it is dropped.
    var isCancelled = false
  }

  let id: pid_t
  let socket: Int32
  let libraries: DecoderLibraries
  var activity: Activity
  /// A task that crashed another process and is to run in this one, which has seen no image yet.
  var reserved: DecodeTicket?
  private(set) var decodes = 0
  private var received: [UInt8] = []

  /// Starts it. It dies with the thread that calls this.
  init(
    executable: String, settings: DecoderSettings, libraries: DecoderLibraries, now: ContinuousClock.Instant
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
    (self.id, self.libraries) = (id, libraries)
    socket = sockets[0]
    activity = .starting(until: now.advanced(by: Self.longestStart))
    // A decoder that does not read must not hold up the others.
    _ = csystem_set_nonblocking(socket)
  }

  private static let longestStart = Duration.seconds(20)

  /// Little memory of malloc's own for the few threads there are, and nothing that the worker was told in secret.
  private static var environment: [String] {
    let libraries = getenv("LD_LIBRARY_PATH").map { ["LD_LIBRARY_PATH=\(String(cString: $0))"] } ?? []
    return ["LC_ALL=C", "MALLOC_ARENA_MAX=2"] + libraries
  }

  /// Ends it at once; what it held is given back when the system has seen to it, see `isReaped`.
  func kill() {
    _ = sendSignal(id, SIGKILL)
    close(socket)
  }

  /// False when it cannot take it: then it is not what it should be.
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
    /// It has ended, or says what is not agreed.
    case lost
  }

  func receive() -> Reception {
    var piece = [UInt8](repeating: 0, count: CodecMessage.longest)
    let length = read(socket, &piece, piece.count)
    if length < 0 && (errno == EAGAIN || errno == EINTR) { return .nothing }
    guard length > 0 else { return .lost }
    received += piece.prefix(length)
    guard let message = CodecMessage(takenFrom: &received) else {
      return received.count > CodecMessage.longest ? .lost : .nothing
    }
    guard received.isEmpty, let reply = CodecReply(message) else { return .lost }
    return .reply(reply)
  }

  /// Bytes of memory that it has allocated, touched or not; 0 where the system does not tell.
  var allocatedBytes: Int {
    let file = open("/proc/\(id)/statm", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return 0 }
    defer { close(file) }
    var text = [UInt8](repeating: 0, count: 128)
    let length = read(file, &text, text.count)
    let fields = String(decoding: text.prefix(max(0, length)), as: UTF8.self).split(separator: " ")
    // The sixth is data and stack, proc(5): what its limit counts.
    return fields.count > 5 ? (Int(fields[5]) ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE))) : 0
  }

  /// Takes a killed process off the system's list, once it has ended.
  static func isReaped(_ id: pid_t, waits: Bool = false) -> Bool {
    while true {
      let result = waitpid(id, nil, waits ? 0 : WNOHANG)
      if result < 0 && errno == EINTR { continue }
      return result != 0
    }
  }
}

extension DecoderProcess {
  var isIdle: Bool { if case .idle = activity { true } else { false } }
  var isStarting: Bool { if case .starting = activity { true } else { false } }

  /// When something must be done about it if it does nothing itself.
  func due(_ settings: DecoderSettings) -> ContinuousClock.Instant? {
    switch activity {
    case .starting(let until): until
    case .idle(let since): since.advanced(by: settings.idleTime)
    case .busy(let assignment): assignment.deadline
    }
  }
}

/// Within a type that has a `kill` of its own.
private func sendSignal(_ process: pid_t, _ signal: Int32) -> Int32 { kill(process, signal) }

/// The strings as C wants arguments: a list of pointers that ends with a null pointer.
private func withCStrings<Result>(
  _ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
) -> Result {
  var pointers = strings.map { strdup($0) } + [nil]
  defer { for pointer in pointers { free(pointer) } }
  return body(&pointers)
}
