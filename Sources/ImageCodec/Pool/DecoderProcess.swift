internal import CSystem
internal import Platform

/// A decoder: a parent process that has loaded the libraries and never sees an image, and the child that it forks for
/// each image, or for a few. Used on the pool's thread only.
final class DecoderProcess {
  /// The current activity of the decoder.
  enum Activity {
    /// The parent has not yet announced its formats.
    case starting(until: Instant)
    case idle(since: Instant)
    case busy(Assignment)
  }

  struct Assignment {
    let ticket: DecodeTicket
    let task: DecodeTask
    let isolation: DecodeTask.Isolation
    let files: TaskFiles
    let limits: DecodeLimits
    /// The time at which the limits are checked next, or after which a child that is killed must have ended.
    var due: Instant
    /// The child's answer, which counts once the child has ended as it should.
    var reply: CodecReply?
    /// The reason for which the child has been killed.
    var kill: Kill?
  }

  enum Kill {
    /// The task is answered already.
    case cancelled, timedOut(DecodeTimeout.Limit)
    /// The child's reply was not understood, or was not true.
    case invalidReply
    /// Earlier images have left the child too little memory.
    case memory
  }

  private struct Child {
    let socket: DecoderSocket
    /// Nil until the parent tells it.
    var id: pid_t?
    /// That of its tasks.
    let isolation: DecodeTask.Isolation
    var decodes = 0
    var isClosed = false
    /// Whether it has been killed between two tasks.
    var isRetired = false
  }

  /// The parent.
  let id: pid_t
  /// Its number among the decoders that run, from 1.
  let number: Int
  let socket: DecoderSocket
  let libraries: DecoderLibraries
  /// The number of images that a child decodes if tasks share it.
  private let lifetime: Int
  var activity: Activity
  private var child: Child?
  /// The reading end of the parent's standard error, until it has started.
  private var messages: Int32?

  /// Starts the parent. It dies with the thread that calls this.
  init(
    number: Int, executable: String, settings: DecoderSettings, libraries: DecoderLibraries,
    now: Instant
  ) throws(DecodeError) {
    guard let (socket, other) = DecoderSocket.pair() else {
      throw .unavailable("cannot create a socket for a decoder: \(String(cString: strerror(errno)))")
    }
    defer { close(other) }
    var messages: [Int32] = [-1, -1]
    guard csystem_pipe(&messages) == 0 else {
      throw .unavailable("cannot create a pipe for a decoder: \(String(cString: strerror(errno)))")
    }
    defer { close(messages[1]) }
    var id = pid_t()
    let arguments = [
      executable, "--serve", "\(settings.memoryLimit)", libraries.rawValue,
      "\(settings.sharedLifetime)",
    ]
    let error = withCStrings(arguments) { arguments in
      withCStrings(Self.environment(libraries)) { csystem_spawn(&id, executable, arguments, $0, other, messages[1]) }
    }
    guard error == 0 else {
      close(messages[0])
      throw .unavailable("\(executable) cannot be started: \(String(cString: strerror(error)))")
    }
    (self.id, self.number, self.libraries, self.socket, self.messages) = (id, number, libraries, socket, messages[0])
    lifetime = settings.sharedLifetime
    activity = .starting(until: now.advanced(by: Self.maxStartTime))
  }

  private static let maxStartTime = Duration.seconds(20)

  deinit { if let messages { close(messages) } }

  /// The last line that the parent, or the dynamic linker, has written to standard error during the start; nil if there
  /// is none, and after the first call.
  func takeMessage() -> String? {
    guard let messages else { return nil }
    defer { close(messages) }
    self.messages = nil
    var text = [UInt8](repeating: 0, count: 1 << 12)
    let length = max(0, read(messages, &text, text.count))
    // The last line tells why it ended.
    let line = String(decoding: text.prefix(length), as: UTF8.self).split(separator: "\n").last
    return line.map { CodecReply.readable($0.suffix(200)) }
  }

  /// The environment: few malloc arenas, because there are few threads; the paths of what a release brings, which may
  /// have been moved since the last start; and none of the worker's secrets. The functions of the libraries are looked
  /// up once by a parent that has few, and not by each child again.
  private static func environment(_ libraries: DecoderLibraries) -> [String] {
    let paths = [
      ("LD_LIBRARY_PATH", getenv("LD_LIBRARY_PATH").map { String(cString: $0) }),
      ("FONTCONFIG_FILE", FontConfiguration.path),
      ("LIBHEIF_PLUGIN_PATH", pathInRelease("lib/libheif-plugins")),
      ("GCONV_PATH", pathInRelease("lib/gconv")),
    ]
    let fixed = ["LC_ALL=C", "MALLOC_ARENA_MAX=2"] + (libraries == .plain ? ["LD_BIND_NOW=1"] : [])
    return fixed + paths.compactMap { name, path in path.map { "\(name)=\($0)" } }
  }

  /// Sends the request to the child, which must be of the task's isolation, and starts one if there is none. False if
  /// that fails, which means that the decoder does not work properly.
  func start(_ assignment: Assignment) -> Bool {
    activity = .busy(assignment)
    defer { assignment.files.closeInput() }
    guard child != nil || startChild(assignment.isolation) else { return false }
    child?.decodes += 1
    return child?.socket.send(CodecRequest(assignment.task).message.bytes, assignment.files.descriptors) == true
  }

  private func startChild(_ isolation: DecodeTask.Isolation) -> Bool {
    guard let (socket, other) = DecoderSocket.pair() else { return false }
    defer { close(other) }
    child = Child(socket: socket, isolation: isolation)
    let command = isolation == .image ? DecoderCommand.startForOne : .start
    return self.socket.send([command.rawValue], [other])
  }

  /// The socket of a child whose answer is awaited.
  var childSocket: DecoderSocket? {
    guard let child, !child.isClosed, case .busy(let assignment) = activity, assignment.reply == nil else { return nil }
    return child.socket
  }

  func childHasStarted(_ id: pid_t) { child?.id = id }

  /// The processor time of the child; nil if it is unknown.
  var processorTime: Duration? {
    guard let id = child?.id else { return nil }
    let time = csystem_processor_time(id)
    return time < 0 ? nil : .nanoseconds(time)
  }

  /// Sets the time of the next check of a decode.
  func check(at time: Instant) {
    guard case .busy(var assignment) = activity else { return }
    assignment.due = time
    activity = .busy(assignment)
  }

  func childHasClosed() { child?.isClosed = true }

  /// Whether the child has decoded other images before that of its current task.
  var childIsUsed: Bool { child.map { $0.decodes > 1 } ?? false }

  /// Whether the child ends after its current task.
  var childEndsAfterTask: Bool { child.map { $0.isolation == .image || $0.decodes >= lifetime } ?? true }

  /// Whether the decoder is idle and its child, if it has one, may decode an image of this isolation.
  func isReady(for isolation: DecodeTask.Isolation) -> Bool {
    isIdle && (child.map { $0.isolation == isolation } ?? true)
  }

  /// Whether the decoder is idle and has a child.
  var hasIdleChild: Bool { isIdle && child != nil }

  /// Has an idle child killed, so that the next can start when the parent tells that it has ended.
  func retireChild() {
    child?.isRetired = true
    _ = socket.send([DecoderCommand.kill.rawValue])
  }

  /// Has the child killed. The parent tells when it has ended.
  func killChild(_ reason: Kill, now: Instant) {
    guard case .busy(var assignment) = activity else { return }
    assignment.kill = reason
    assignment.due = now.advanced(by: Self.maxKillTime)
    activity = .busy(assignment)
    _ = socket.send([DecoderCommand.kill.rawValue])
  }

  private static let maxKillTime = Duration.seconds(2)

  func forgetChild() { child = nil }

  var isRetiring: Bool { child?.isRetired == true }

  enum Reaping {
    case running
    /// With the status of wait(2); nil if the system does not know it.
    case ended(Int32?)
  }

  /// Reaps a parent if it has ended.
  static func reap(_ id: pid_t) -> Reaping {
    var status: Int32 = 0
    let result = retryingOnInterrupt { waitpid(id, &status, WNOHANG) }
    return result == 0 ? .running : .ended(result > 0 ? status : nil)
  }
}

extension DecoderProcess {
  /// False while a child that has been retired ends.
  var isIdle: Bool { if case .idle = activity { !isRetiring } else { false } }
  var isBusy: Bool { if case .busy = activity { true } else { false } }
  var isStarting: Bool { if case .starting = activity { true } else { false } }

  /// The time at which the pool must act if the process does nothing.
  func due(_ settings: DecoderSettings) -> Instant? {
    switch activity {
    case .starting(let until): until
    case .idle(let since): since.advanced(by: settings.idleTime)
    case .busy(let assignment): assignment.due
    }
  }
}

/// Passes the strings as C arguments: an array of pointers that ends with a null pointer.
private func withCStrings<Result>(
  _ strings: [String], _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Result
) -> Result {
  var pointers = strings.map { strdup($0) } + [nil]
  defer { for pointer in pointers { free(pointer) } }
  return body(&pointers)
}
