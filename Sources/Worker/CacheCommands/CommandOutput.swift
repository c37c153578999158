internal import ImageStore
internal import LineRPC
internal import Platform

/// The standard output of a command: text on a terminal, lines of JSON in a pipe or a file.
///
/// Output is buffered. Writing may block for as long as a reader wants, so a command must hold no lock and no
/// transaction meanwhile.
final class CommandOutput {
  /// Whether the output is text for people.
  let isText: Bool
  private var buffer: [UInt8] = []
  private static let bufferSize = 1 << 16

  init(_ options: CommandOptions) {
    // A reader that ends early, such as head, must end the command in an orderly way.
    signal(SIGPIPE, SIG_IGN)
    signal(SIGXFSZ, SIG_IGN)
    isText = options.text || !options.json && isatty(STDOUT_FILENO) != 0
  }

  /// Writes a line of text, or an object as a line of JSON. Control characters in the text become spaces, so that a
  /// name cannot command the terminal.
  func write(_ text: @autoclosure () -> String, _ members: (inout JSONWriter) -> Void) throws(ExitError) {
    if isText {
      buffer += singleLine(text(), atMost: .max)
    } else {
      var writer = JSONWriter(capacity: 512)
      writer.object(members)
      buffer += writer.line()
    }
    if buffer.count >= Self.bufferSize { try finish() }
  }

  /// Writes a line that only people get.
  func writeText(_ text: @autoclosure () -> String) throws(ExitError) {
    if isText { try write(text()) { _ in } }
  }

  /// Writes everything.
  ///
  /// - Throws: an error with the status EX_IOERR; without a message if the reader is gone.
  func finish() throws(ExitError) {
    let bytes = buffer
    buffer = []
    do throws(SystemError) {
      try writeAll(bytes, to: STDOUT_FILENO)
    } catch {
      let reason = String(cString: strerror(error.number))
      throw ExitError(
        status: ExitStatus.inputOrOutput,
        message: error.number == EPIPE ? "" : "standard output cannot be written: \(reason)")
    }
  }
}

/// A table for people.
struct TextTable {
  /// Titles and widths; the texts of a column with a negative width begin at its left edge.
  let columns: [(title: String, width: Int)]

  var header: String { row(columns.map(\.title)) }

  func row(_ cells: [String]) -> String {
    zip(columns, cells).map { column, cell in
      let padding = String(repeating: " ", count: max(0, abs(column.width) - cell.count))
      return column.width < 0 ? cell + padding : padding + cell
    }.joined(separator: "  ")
  }
}

extension EntrySum {
  var text: String {
    let images = Quantity.text(entries, of: "image")
    return "\(images), \(Quantity.text(size: bytes)) (\(Quantity.text(size: allocated)) on disk)"
  }
}
