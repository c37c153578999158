/// The help of `imageworker cache` and of each of its commands, in lines of at most 100 characters.
enum CommandHelp {
  static let maxWidth = 100

  static var overview: String {
    let commands = CacheCommand.all
    let width = commands.map { $0.name.count + $0.operands.count + 1 }.max() ?? 0
    let table = commands.map { command in
      let usage = command.operands.isEmpty ? command.name : "\(command.name) \(command.operands)"
      return "  " + usage.padded(to: width + 2) + command.summary
    }
    return """
      usage: imageworker cache COMMAND [options]

      Shows and changes the cache of a directory, beside running workers or without.

      \(table.joined(separator: "\n"))

      \(wrapped(overviewDescription))

      \(wrapped(overviewStatuses))

      """
  }

  private static let overviewDescription = """
    The cache is that of the worker with the same --cache-dir and --cache-namespace. The commands that only show it
    create and change no file. They see what the workers have written to the index: a worker writes a stored image
    within half a second, and a use within three seconds.

    On a terminal a command writes text for people. Into a pipe or a file it writes lines of JSON, one object per line,
    for programs; times are in UTC, sizes in bytes. --json and --text choose one of them.
    """

  private static let overviewStatuses = """
    Exit status: 0 done, 1 nothing matched or the cache is damaged, 64 invalid arguments, 66 no such cache, 73 cache
    cannot be written, 74 input or output failed. imageworker cache COMMAND --help describes a command.
    """

  static func text(of command: CacheCommand) -> String {
    let operands = command.operands.isEmpty ? "" : " \(command.operands)"
    var sections = [
      "usage: imageworker cache \(command.name)\(operands) [options]", wrapped(command.description),
      options(of: command),
    ]
    let examples = command.examples.map { "    imageworker cache \($0.command)\n        \($0.meaning)" }
    sections.append("Examples:\n\n" + examples.joined(separator: "\n"))
    sections.append(
      wrapped(
        """
        SIZE is a number of bytes, with K, M or G for powers of 1024. DURATION is 0 or a number with ms, s, m, h or d.
        """))
    sections.append(
      wrapped(
        """
        Exit status: \(command.statuses), 64 invalid arguments, 66 no such cache, 73 cache cannot be written, 74 input
        or output failed.
        """))
    return sections.joined(separator: "\n\n") + "\n"
  }

  /// The table of options, with long meanings continued on further lines.
  private static func options(of command: CacheCommand) -> String {
    let rows =
      command.allOptions.map { option in
        (flag: "--\(option.name)\(option.placeholder.isEmpty ? "" : " \(option.placeholder)")", help: option.help)
      } + [(flag: "--help, -h", help: "print this and exit")]
    let width = (rows.map { $0.flag.count }.max() ?? 0) + 4
    return rows.map { row in
      let lines = wrap(row.help, width: maxWidth - width)
      let indentation = "\n" + String(repeating: " ", count: width)
      return "  " + row.flag.padded(to: width - 2) + lines.joined(separator: indentation)
    }.joined(separator: "\n")
  }

  /// Paragraphs, which empty lines separate, in lines of at most `maxWidth`.
  static func wrapped(_ text: String) -> String {
    text.split(separator: "\n\n").map { wrap(String($0), width: maxWidth).joined(separator: "\n") }
      .joined(separator: "\n\n")
  }

  private static func wrap(_ text: String, width: Int) -> [String] {
    var lines: [String] = []
    for word in text.split(whereSeparator: { $0 == " " || $0 == "\n" }) {
      if let last = lines.last, last.count + 1 + word.count <= width {
        lines[lines.count - 1] += " " + word
      } else {
        lines.append(String(word))
      }
    }
    return lines
  }
}

extension String {
  /// The text with spaces at its end, so that it is at least `width` characters wide.
  func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }

  /// The text with spaces at its beginning.
  func rightAligned(to width: Int) -> String { String(repeating: " ", count: max(0, width - count)) + self }
}
