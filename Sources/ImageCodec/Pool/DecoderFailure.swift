internal import Platform

/// The end of a decoder's parent or child before its time, for the log.
public struct DecoderFailure: Sendable {
  enum Cause {
    /// The process has ended, or closed its socket.
    case ended
    /// A reply that was not understood, or was not true.
    case invalidReply
    /// The process was killed at a limit of a decode, or of the start.
    case timedOut(DecodeTimeout.Limit)
  }

  /// The number of the process.
  public let process: Int32
  /// The format of the image in decoding; nil if the process was starting or idle.
  public let format: ImageFormat?
  let cause: Cause
  /// The text that the process wrote about its start.
  let text: String?
  /// The status of wait(2), once the process has been reaped.
  var status: Int32?

  init(
    _ cause: Cause, of process: Int32, decoding format: ImageFormat?, text: String? = nil, status: Int32? = nil
  ) {
    (self.process, self.format, self.cause, self.text, self.status) = (process, format, cause, text, status)
  }

  public var isTimeout: Bool { if case .timedOut = cause { true } else { false } }

  /// The reason, such as `signal 11 (Segmentation fault)`.
  public var reason: String {
    switch cause {
    case .invalidReply: "an invalid reply"
    case .timedOut(.processorTime): "the limit of processor time"
    case .timedOut(.elapsedTime): "the limit of elapsed time"
    case .ended:
      // As WIFSIGNALED and WEXITSTATUS, which Swift cannot import.
      switch status.map({ ($0 & 0x7F, ($0 >> 8) & 0xFF) }) {
      case nil: "unknown"
      case (0, let code)?: "exit status \(code)\(text.map { " (\($0))" } ?? "")"
      case (let signal, _)?: "signal \(signal) (\(String(cString: strsignal(signal))))"
      }
    }
  }

  /// Continues a sentence that begins with the process.
  public var message: String {
    let verb =
      switch cause {
      case .ended: "crashed"
      case .invalidReply, .timedOut: "was killed"
      }
    return "\(verb)\(format.map { " while it decoded \($0.rawValue)" } ?? ""): \(reason)"
  }
}
