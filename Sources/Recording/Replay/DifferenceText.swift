internal import LineRPC

/// The texts of differences.
extension Difference {
  static func changed(_ recorded: JSON, _ replayed: JSON, at path: String, line: Int) -> Difference {
    Difference(
      message: """
        line \(line) of the journal: \(path) differs
          recorded: \(text(recorded))
          replayed: \(text(replayed))
        """)
  }

  static func added(_ replayed: JSON, after line: Int) -> Difference {
    Difference(
      message: """
        after line \(line) of the journal: the recorded session did nothing more for this cause
          replayed: \(text(replayed))
        """)
  }

  static func missing(_ recorded: JSON, line: Int) -> Difference {
    Difference(
      message: """
        line \(line) of the journal: the replay does nothing more for this cause
          recorded: \(text(recorded))
        """)
  }

  private static func text(_ json: JSON) -> String {
    String(decoding: JournalWriter.line(json).dropLast().prefix(2000), as: UTF8.self)
  }
}

extension JournalGroup {
  /// The event that the cause waits for.
  var waitDescription: String {
    switch cause {
    case .work(let source): "line \(line) of the journal waits for a result of work \(source)"
    case .decoded(let decode, _, _): "line \(line) of the journal waits for the end of decode \(decode)"
    default: "line \(line) of the journal"
    }
  }
}
