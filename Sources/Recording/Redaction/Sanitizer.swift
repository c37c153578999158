internal import ImageStore
internal import LineRPC
internal import Loading
internal import Text

/// Makes a line fit for a recording: without secrets and without the folders of this process. The digest of image data
/// replaces the data.
struct Sanitizer: Sendable {
  private var redactor: Redactor
  private(set) var paths: WorkerPaths

  init(redactsQueries: Bool, paths: WorkerPaths) {
    redactor = Redactor(redactsQueries: redactsQueries)
    self.paths = paths
  }

  /// A cause or an effect. Cleaning it again changes nothing.
  mutating func clean(_ line: JSON) -> JSON {
    guard case .object(let object) = line else { return line }
    let isSent = object["sent"] != nil
    return redactor.redact(general(line, withoutData: isSent))
  }

  /// The header of a journal, whose `options` may contain secrets.
  mutating func cleanHeader(_ header: JSON) -> JSON { redactor.redact(general(header, withoutData: false)) }

  private mutating func general(_ value: JSON, withoutData: Bool) -> JSON {
    switch value {
    case .string(let text): .string(paths.general(text))
    case .array(let elements): .array(elements.map { general($0, withoutData: withoutData) })
    case .object(let object):
      .object(
        object.mapValues { name, value in
          if withoutData, name == "data", case .string(let text) = value { return .string(Self.digest(ofData: text)) }
          return general(value, withoutData: withoutData)
        })
    default: value
    }
  }

  private static func digest(ofData text: String) -> String {
    if text.hasPrefix("sha256-") { return text }
    return "sha256-" + SHA256.digest(of: Array(text.utf8)).hexadecimal
  }
}
