internal import CSystem
internal import CodecCore
internal import ImageCodec
internal import Platform

/// A decoder with a hole: a file that ends with `HOLE:` and the name of an attempt runs that in the child, as an image
/// would that has taken over the process. The outcome is the text of the error.
enum Hole {
  static func serve(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    let formats = CodecFormats(decode: [.jpeg], encode: [.jpeg])
    return CodecProgram(start: { _ in formats }, decode: decode).run(count, arguments)
  }

  private static func decode(_ request: CodecRequest, _ file: InputFile, _ output: OutputFile?) -> CodecReply {
    let text = String(decoding: file.bytes.suffix(64), as: UTF8.self)
    guard let mark = text.firstRange(of: "HOLE:") else {
      // Its parent decodes other outputs to warm up.
      if request.output == .check { imageBefore = file.bytes.count }
      var decoded = Decoded()
      (decoded.sourceWidth, decoded.sourceHeight) = (1, 1)
      return .done(decoded)
    }
    let name = String(text[mark.upperBound...])
    if let reply = lie(name) { return reply }
    guard let action = (SandboxProbe.attempts + attempts()).first(where: { $0.name == name })?.action else {
      return .failed(.io("no such attempt"))
    }
    return .failed(.io(SandboxProbe.outcome(of: action)))
  }

  /// The length of the image that this process has decoded before.
  private nonisolated(unsafe) static var imageBefore: Int?  // used on one thread only

  private static func attempts() -> [(name: String, action: @Sendable () -> Int32)] {
    #if os(Linux)
      return [
        ("see the image before", { imageBefore == nil ? -1 : 0 }),
        // Those of the tasks, and of standard output and error, which are /dev/null, are its own.
        ("reach another descriptor", { ([0] + (4..<64)).contains { fcntl($0, F_GETFD) >= 0 } ? 0 : -1 }),
        ("kill everything", { kill(-1, SIGKILL) }),
        ("kill its group", { kill(0, SIGKILL) }),
        ("wait for another process", { waitpid(-1, nil, WNOHANG) }),
        ("outlive its parent", { csystem_outlive_parent() }),
        ("share memory", { csystem_memory_file() }),
        ("read the memory of its parent", { csystem_read_memory(getppid()) }),
        ("change its priority", { nice(19) }),
        ("leave its session", { setsid() }),
        (
          "take all memory",
          { mmap(nil, 3 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0 }
        ),
      ]
    #else
      return []
    #endif
  }

  /// The socket of the tasks, which is the first descriptor that the parent receives.
  private static let tasks: Int32 = 3

  /// Nil if there is no such lie.
  private static func lie(_ name: String) -> CodecReply? {
    let answer = CodecReply.failed(.io("sent"))
    func send(_ reply: CodecReply, descriptors: [Int32] = []) {
      let bytes = reply.message.bytes
      _ = csystem_send(tasks, bytes, bytes.count, descriptors, Int32(descriptors.count))
    }
    switch name {
    case "answer twice": send(answer)
    case "answer as its parent": send(.ended(getpid(), status: 0))
    case "announce formats": send(.ready(CodecFormats(decode: [], encode: []), sandbox: []))
    case "answer with the file of another":
      var decoded = Decoded()
      (decoded.format, decoded.bytes, decoded.width, decoded.height, decoded.frames) = (.jpeg, 5, 1, 1, 1)
      return .done(decoded)
    case "flood":
      let zeros = [UInt8](repeating: 0, count: 1 << 20)
      _ = csystem_send(tasks, zeros, zeros.count, nil, 0)
    case "send a descriptor":
      send(answer, descriptors: [tasks])
      _exit(0)
    case "stay after the answer":
      send(answer)
      while true { sleep(1000) }
    case "compute": while true {}
    case "crash": csystem_crash()
    default: return nil
    }
    return answer
  }
}
