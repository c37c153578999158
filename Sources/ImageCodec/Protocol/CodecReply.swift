package import Platform

/// A message from a decoder. The parent says `ready`, `started` and `ended`, its children the other.
package enum CodecReply: Sendable, Hashable {
  case ready(CodecFormats, sandbox: [String])
  /// A child has started.
  case started(pid_t)
  /// A child has ended, with a status of wait(2).
  case ended(pid_t, status: Int32)
  case done(Decoded)
  case failed(DecodeError)
  /// The image needs a decoder with these libraries.
  case needs(DecoderLibraries)

  package var message: CodecMessage {
    var message = CodecMessage()
    switch self {
    case .ready(let formats, let sandbox):
      message["says"] = "ready"
      message["decode"] = formats.decode.names
      message["encode"] = formats.encode.names
      message["libraries"] = formats.libraries.joined(separator: ",")
      message["sandbox"] = sandbox.joined(separator: ",")
    case .started(let child):
      message["says"] = "started"
      message[number: "child"] = Int(child)
    case .ended(let child, let status):
      message["says"] = "ended"
      message[number: "child"] = Int(child)
      message[number: "status"] = Int(status)
    case .done(let decoded):
      message["says"] = "done"
      message["format"] = decoded.format?.rawValue
      for (name, path) in Self.numbers { message[number: name] = decoded[keyPath: path] }
      message[number: "notes"] = decoded.notes.rawValue
      if let placeholder = decoded.placeholder {
        message[number: "color"] = Int(placeholder.color)
        message["thumbHash"] = placeholder.thumbHash.map { String($0) }.joined(separator: ",")
      }
      decoded.facts.add(to: &message)
      if !decoded.renditions.isEmpty { message[number: "count"] = decoded.renditions.count }
      for (index, file) in decoded.renditions.enumerated() { file.add(to: &message, index) }
    case .needs(let libraries):
      message["says"] = "needs"
      message["libraries"] = libraries.rawValue
    case .failed(let error):
      message["says"] = "failed"
      if case .ofRendition(let index, _) = error { message[number: "rendition"] = index }
      (message["kind"], message["text"]) = error.named
      error.figures.add(to: &message)
    }
    return message
  }

  /// Nil if the message is not a valid reply.
  package init?(_ message: CodecMessage) {
    switch message["says"] {
    case "ready":
      let formats = CodecFormats(
        decode: [ImageFormat](names: message["decode"] ?? ""), encode: [ImageFormat](names: message["encode"] ?? ""),
        libraries: (message["libraries"] ?? "").split(separator: ",").map { Self.readable($0) })
      let sandbox = (message["sandbox"] ?? "").split(separator: ",").map { Self.readable($0) }
      self = .ready(formats, sandbox: sandbox)
    case "started":
      guard let child = message[number: "child"].flatMap(pid_t.init(exactly:)) else { return nil }
      self = .started(child)
    case "ended":
      guard let child = message[number: "child"].flatMap(pid_t.init(exactly:)),
        let status = message[number: "status"].flatMap(Int32.init(exactly:))
      else { return nil }
      self = .ended(child, status: status)
    case "done":
      var decoded = Decoded()
      for (name, path) in Self.numbers {
        guard let number = message[number: name] else { return nil }
        decoded[keyPath: path] = number
      }
      decoded.notes = ImageNotes(rawValue: message[number: "notes"] ?? 0).intersection(.all)
      decoded.format = message["format"].flatMap(ImageFormat.init(rawValue:))
      if let color = message[number: "color"].flatMap({ UInt32(exactly: $0) }), let hash = message["thumbHash"] {
        let bytes = hash.split(separator: ",").compactMap { UInt8($0) }
        guard bytes.count <= 64, color <= 0xFFFFFF else { return nil }
        decoded.placeholder = Placeholder(thumbHash: bytes, color: color)
      }
      guard let facts = ImageFacts(message) else { return nil }
      decoded.facts = facts
      let count = message[number: "count"] ?? 0
      guard count <= RenditionSet.maxCount else { return nil }
      decoded.renditions = (0..<count).compactMap { Decoded.File(message, $0) }
      guard decoded.renditions.count == count else { return nil }
      self = .done(decoded)
    case "needs":
      guard let libraries = message["libraries"].flatMap(DecoderLibraries.init(rawValue:)) else { return nil }
      self = .needs(libraries)
    case "failed":
      let text = Self.readable(message["text"] ?? "")
      guard let kind = message["kind"], let error = DecodeError(kind: kind, text: text, ErrorFigures(message)) else {
        return nil
      }
      self = .failed(message[number: "rendition"].map { .ofRendition($0, error) } ?? error)
    default: return nil
    }
  }

  private static let numbers: [(String, any WritableKeyPath<Decoded, Int> & Sendable)] = [
    ("bytes", \.bytes), ("width", \.width), ("height", \.height), ("frames", \.frames), ("channels", \.channels),
    ("sourceWidth", \.sourceWidth), ("sourceHeight", \.sourceHeight),
  ]

  /// Reduces a text to one short line of plain ASCII, because libraries may quote hostile files in their messages.
  package static func readable(_ text: some StringProtocol) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.prefix(200).map { (32...126).contains($0.value) ? $0 : "?" }))
  }
}

extension Decoded.File {
  private static let numbers: [(String, any WritableKeyPath<Decoded.File, Int> & Sendable)] = [
    ("bytes", \.bytes), ("width", \.width), ("height", \.height), ("frames", \.frames),
  ]

  fileprivate func add(to message: inout CodecMessage, _ index: Int) {
    message["format\(index)"] = format.rawValue
    for (name, path) in Self.numbers { message[number: "\(name)\(index)"] = self[keyPath: path] }
    message[number: "quality\(index)"] = quality
  }

  fileprivate init?(_ message: CodecMessage, _ index: Int) {
    guard let format = message["format\(index)"].flatMap(ImageFormat.init(rawValue:)) else { return nil }
    self.init(bytes: 0, format: format, width: 0, height: 0, frames: 0, quality: message[number: "quality\(index)"])
    for (name, path) in Self.numbers {
      guard let number = message[number: "\(name)\(index)"], number > 0 else { return nil }
      self[keyPath: path] = number
    }
  }
}

extension DecodeError {
  /// The encoding of the errors that a decoder itself can report.
  fileprivate var named: (kind: String, text: String) {
    switch self {
    case .corrupt(let text): ("corrupt", text)
    case .unsupportedFormat(let text, _): ("unsupportedFormat", text)
    case .tooManyPixels(let text, _): ("tooManyPixels", text)
    case .outOfMemory(let text): ("outOfMemory", text)
    case .cropOutside(let text): ("cropOutside", text)
    case .io(let text): ("io", text)
    case .diskFull(let text): ("diskFull", text)
    case .tooLarge(let text, _): ("tooLarge", text)
    case .ofRendition(_, let error): error.named
    case .crashed, .killed, .timedOut, .cancelled, .unavailable: ("io", "\(self)")
    }
  }

  /// The error of a write of the decoded image that failed with a code of errno(3).
  package static func unwritable(_ code: Int32) -> DecodeError {
    let text = "the decoded image cannot be written to a temporary file: \(String(cString: strerror(code)))"
    return code == ENOSPC || code == EDQUOT ? .diskFull(text) : .io(text)
  }

  package var figures: ErrorFigures {
    switch self {
    case .unsupportedFormat(_, let figures), .tooManyPixels(_, let figures), .tooLarge(_, let figures): figures
    case .ofRendition(_, let error): error.figures
    default: ErrorFigures()
    }
  }

  fileprivate init?(kind: String, text: String, _ figures: ErrorFigures) {
    switch kind {
    case "corrupt": self = .corrupt(text)
    case "unsupportedFormat": self = .unsupportedFormat(text, figures)
    case "tooManyPixels": self = .tooManyPixels(text, figures)
    case "outOfMemory": self = .outOfMemory(text)
    case "cropOutside": self = .cropOutside(text)
    case "io": self = .io(text)
    case "diskFull": self = .diskFull(text)
    case "tooLarge": self = .tooLarge(text, figures)
    default: return nil
    }
  }
}
