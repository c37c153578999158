extension CacheCommand {
  /// The help of `imageworker cache`.
  static var overview: String {
    """
    usage: imageworker cache COMMAND [options]

    Shows and changes the cache of a directory, beside running workers or without.

    \(helpTable(all.map { ($0.nameAndOperand, $0.summary) }))

    The cache is that of the worker with the same --cache-dir and --cache-namespace. The commands that
    only show it create and change no file. They see what the workers have written to the index: a
    worker writes a stored image within half a second, and a use within three seconds.

    On a terminal a command writes text for people. Into a pipe or a file it writes lines of JSON, one
    object per line, with times in UTC and sizes in bytes. --json and --text choose one of them.

    Exit status: 0 done, 1 nothing matched or the cache is damaged, 64 invalid arguments, 66 no such
    cache, 73 cache cannot be written, 74 input or output failed. imageworker cache COMMAND --help
    describes a command.

    """
  }

  private var nameAndOperand: String { operand.map { "\(name) \($0)" } ?? name }

  var help: String {
    let examples = examples.map { "    imageworker cache \($0.command)\n        \($0.meaning)" }
    return """
      usage: imageworker cache \(nameAndOperand) [options]

      \(description)

      \(helpTable(allOptions.map { ($0.usage, $0.help) } + [("--help, -h", "print this and exit")]))

      Examples:

      \(examples.joined(separator: "\n"))

      Exit status: \(statuses),
      64 invalid arguments, 66 no such cache, 73 cache cannot be written, 74 input or output failed.

      """
  }
}
