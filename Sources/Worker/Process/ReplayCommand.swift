internal import LineRPC
internal import Text

/// The command line of `imageworker replay`.
struct ReplayCommand: Equatable {
  /// The directory of the recording.
  var recording: String
  /// Whether the lines for the host are not written.
  var isCheck = false
  /// The directory for the cache and the files of the host; nil for a temporary one.
  var files: String?

  enum Parsed: Equatable {
    case replay(ReplayCommand)
    case help
    /// With a message for people.
    case refused(String)
  }

  /// - Parameter arguments: those after `replay`.
  static func parse(_ arguments: [String]) -> Parsed {
    var command = ReplayCommand(recording: "")
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      switch argument {
      case "--help", "-h": return .help
      case "--check": command.isCheck = true
      case "--files":
        guard let value = rest.popFirst(), !value.isEmpty, !value.hasPrefix("-") else {
          return .refused("replay: --files must have a value: DIR")
        }
        command.files = value
      case _ where argument.hasPrefix("-"):
        let known = ["--check", "--files", "--help"].nearest(to: argument)
        let hint = known.map { "did you mean \($0)?" } ?? "see imageworker replay --help"
        return .refused("replay: \(argument.quotable) is not an option; \(hint)")
      case _ where !command.recording.isEmpty: return .refused("replay: only one recording can be replayed at a time")
      default: command.recording = argument
      }
    }
    return command.recording.isEmpty
      ? .refused("replay: name the directory of a recording, which --record has made") : .replay(command)
  }

  static let help = """
    usage: imageworker replay DIR [--check] [--files DIR]

    Repeats the session that imageworker --record DIR has recorded, without a network. Writes its
    responses and events to standard output, and the first difference, if there is one, to standard
    error.

      --check      write no responses and events
      --files DIR  directory for the cache and for files that the session saves, missing or empty
                   [a temporary directory, which is removed at the end]
      --help, -h   print this and exit

    Exit status: 0 the session did the same, 1 it did something else, 64 invalid arguments, 65 the
    recording is damaged, 73 the directory cannot be created, 74 output closed.

    """
}

/// Writes a report to standard error, with its line breaks.
func printReport(_ text: String) {
  for line in text.split(separator: "\n") { printMessage("replay: \(line)") }
}
