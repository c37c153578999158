internal import HTTPTypes
internal import LineRPC

/// The form of the log's lines.
enum LogFormat: String, CaseIterable, Sendable {
  /// A line that people read: the level, the ids if the event is about a request, and the message.
  case text
  /// A JSON object per line, in ASCII.
  case json
}

struct LogLine {
  let event: LogEvent
  /// The wall-clock time in milliseconds since 1970.
  let time: Int64
  /// The number of this process.
  let process: Int32
  /// The number of lines of the same event that were left out before this one.
  var omitted = 0

  /// The maximum length of a line in bytes, at most PIPE_BUF of Linux: a pipe accepts it as a whole or not at all.
  static let maxLength = 4000

  /// The line, with its line feed.
  func bytes(as format: LogFormat, atMost count: Int = maxLength) -> [UInt8] {
    switch format {
    case .text: singleLine(text, atMost: count - 1)
    case .json: json(atMost: count)
    }
  }

  // MARK: - Text

  private var text: String {
    let note = omitted > 0 ? " (\(omitted) more like this in the last minute)" : ""
    return "imageworker: \(showsLevel ? "\(event.level): " : "")\(subject)\(event.message)\(note)"
  }

  /// Whether the line shows its level. One that a person reads at a terminal does not.
  private var showsLevel: Bool { event.name != .workerFailed && event.name != .inputTerminal }

  /// The ids of the request, such as `[request 7, load 12] `; empty if the event is not about a request.
  private var subject: String {
    let ids: [String] = [(LogEvent.Field.requestId, "request"), (.load, "load"), (.traceId, "trace")].compactMap {
      field, label in
      switch event[field] {
      case .integer(let number): "\(label) \(number)"
      case .string(let text): "\(label) \(text)"
      default: nil
      }
    }
    return ids.isEmpty ? "" : "[\(ids.joined(separator: ", "))] "
  }

  // MARK: - JSON

  /// Texts are cut, the same length for all, until the line is short enough. Ids are whole.
  private func json(atMost count: Int) -> [UInt8] {
    var line = json(textsAtMost: .max)
    for limit in Self.textLengths where line.count > count { line = json(textsAtMost: limit) }
    return line
  }

  private static let textLengths = [1000, 300, 100, 30, 10]

  private func json(textsAtMost limit: Int) -> [UInt8] {
    var writer = JSONWriter(capacity: 512)
    writer.object { writer in
      writer.member("time", Timestamp.format(milliseconds: time))
      writer.member("level", event.level.rawValue)
      writer.member("event", event.name.rawValue)
      writer.member("message", event.message.cut(toASCIIJSON: limit))
      writer.member("pid", Int64(process))
      if omitted > 0 { writer.member("omitted", omitted) }
      for (field, value) in event.fields {
        writer.key(escaping: field.rawValue)
        writer.value(field == .requestId || field == .traceId ? value : value.cut(to: limit))
      }
    }
    return writer.line()
  }
}

extension JSON {
  /// The value with each text cut to this length.
  fileprivate func cut(to limit: Int) -> JSON {
    switch self {
    case .string(let text): .string(text.cut(toASCIIJSON: limit))
    case .array(let elements): .array(elements.map { $0.cut(to: limit) })
    default: self
    }
  }
}

extension String {
  /// The longest beginning of at most this length as ASCII JSON, with `…` after it if something is missing.
  fileprivate func cut(toASCIIJSON limit: Int) -> String {
    // No scalar takes more than 12 bytes, and no byte of UTF-8 more than 6.
    if limit == .max || utf8.count <= limit / 6 { return self }
    var (length, end) = (0, unicodeScalars.startIndex)
    while end < unicodeScalars.endIndex {
      length += String(unicodeScalars[end]).asciiJSONLength
      if length > limit { return String(unicodeScalars[..<end]) + "…" }
      end = unicodeScalars.index(after: end)
    }
    return self
  }
}

/// The text as one line of at most `count` bytes and a line feed. Control characters in it, such as line breaks in
/// names and values, and marks that reorder text on a terminal become spaces.
func singleLine(_ text: String, atMost count: Int) -> [UInt8] {
  let isPlain = text.utf8.allSatisfy { $0 != 0xC2 && $0 != 0xE2 }
  let text = isPlain ? text : String(String.UnicodeScalarView(text.unicodeScalars.map { $0.isForTerminal ? " " : $0 }))
  var bytes = text.utf8.prefix(count)[...]
  // Do not end within a character.
  while bytes.endIndex < text.utf8.endIndex, text.utf8[bytes.endIndex] & 0xC0 == 0x80 { bytes = bytes.dropLast() }
  return bytes.map { $0 < 0x20 || $0 == 0x7F ? 0x20 : $0 } + [0x0A]
}

extension Unicode.Scalar {
  /// Whether a terminal may take it as an order: a control character of C1, a separator of lines, a mark of direction.
  fileprivate var isForTerminal: Bool {
    switch value {
    case 0x80...0x9F, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
    default: false
    }
  }
}
