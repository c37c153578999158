internal import LineRPC
internal import Platform

/// The standard output of a command: text on a terminal, lines of JSON in a pipe or a file.
///
/// Output is buffered. Writing may block for as long as a reader wants, so a command must hold no lock and no
/// transaction meanwhile.
final class CommandOutput {
  enum Format { case text, json }

  let format: Format
  private var buffer: [UInt8] = []
  private static let bufferSize = 1 << 16

  init(arguments: CommandArguments) {
    // A reader that ends early, such as head, must end the command in an orderly way.
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
    format = arguments.has("json") || !arguments.has("text") && isatty(STDOUT_FILENO) == 0 ? .json : .text
  }

  /// Writes a line of text. Control characters in it become spaces, so that a name cannot command the terminal.
  func line(_ text: String) throws(CommandError) { try append(singleLine(text, atMost: .max)) }

  /// Writes an object as a line of JSON.
  func object(_ write: (inout JSONWriter) -> Void) throws(CommandError) {
    var writer = JSONWriter(capacity: 512)
    writer.object(write)
    try append(writer.line())
  }

  /// Writes bytes that are neither text nor JSON.
  func append(_ bytes: [UInt8]) throws(CommandError) {
    buffer += bytes
    if buffer.count >= Self.bufferSize { try finish() }
  }

  /// Writes everything.
  ///
  /// - Throws: an error with the status EX_IOERR; without a message if the reader is gone.
  func finish() throws(CommandError) {
    var rest = buffer[...]
    buffer = []
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { systemWrite(STDOUT_FILENO, $0.baseAddress!, $0.count) }
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else if errno == EAGAIN {
        var descriptor = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
        _ = poll(&descriptor, 1, -1)
      } else if errno != EINTR {
        let message = errno == EPIPE ? "" : "standard output cannot be written: \(String(cString: strerror(errno)))"
        throw CommandError(status: ExitStatus.inputOrOutput, message: message)
      }
    }
  }
}
