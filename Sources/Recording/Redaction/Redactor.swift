internal import LineRPC
internal import Text

/// Replaces the secrets in the lines of a recording.
///
/// It knows them by the names of their members and header fields, and by their position in URLs; see the page
/// `examples/operating/recording.md`.
struct Redactor: Sendable {
  /// The party whose header fields a member describes. A host can put secrets into any field of a request.
  enum Party { case host, server }

  private let urls: URLRedaction
  private var placeholders = Placeholders()

  init(redactsQueries: Bool) { urls = URLRedaction(redactsQueries: redactsQueries) }

  /// A JSON value without its secrets.
  mutating func redact(_ value: JSON, of party: Party = .host) -> JSON {
    switch value {
    case .string(let text): .string(urls.redact(text, &placeholders))
    case .array(let elements): .array(elements.map { redact($0, of: party) })
    case .object(let object): .object(object.mapValues { redact($1, named: $0, of: party) })
    default: value
    }
  }

  private mutating func redact(_ value: JSON, named name: String, of party: Party) -> JSON {
    switch name.lowercased() {
    case "responseheaders": return fields(value, of: .server)
    case "headers", "header": return fields(value, of: party)
    case "response": return redact(value, of: .server)
    case "proxy":
      guard case .string(let text) = value, !text.utf8.starts(with: "data:".utf8), !text.contains("://") else { break }
      return .string(urls.redactUserInfo(text, &placeholders))
    case let name where SecretNames.isSecret(name): return secret(value)
    default: break
    }
    return redact(value, of: party)
  }

  // MARK: - Header fields

  /// Header fields as an object, as pairs, or as lines `Name: value`.
  private mutating func fields(_ value: JSON, of party: Party) -> JSON {
    switch value {
    case .object(let object): return .object(object.mapValues { field($0, $1, of: party) })
    case .array(let elements):
      return .array(
        elements.map { element in
          if case .array(let pair) = element, pair.count == 2, case .string(let name) = pair[0] {
            return .array([pair[0], field(name, pair[1], of: party)])
          }
          return fields(element, of: party)
        })
    case .string(let line):
      guard let colon = line.firstIndex(of: ":") else { return value }
      let text = line[line.index(after: colon)...]
      let blanks = text.prefix { $0 == " " || $0 == "\t" }
      let redacted = field(String(line[..<colon]), .string(String(text.dropFirst(blanks.count))), of: party)
      guard case .string(let new) = redacted else { return value }
      return .string("\(line[...colon])\(blanks)\(new)")
    default: return value
    }
  }

  private mutating func field(_ name: String, _ value: JSON, of party: Party) -> JSON {
    let name = name.lowercased()
    switch party {
    case .host where SecretNames.isSecret(requestField: name): return secret(value)
    case .server where SecretNames.isSecret(name): return secret(value)
    case .server where SecretNames.mayHaveURL(responseField: name):
      guard case .string(let text) = redact(value) else { return value }
      return .string(urls.redactRelative(text, &placeholders))
    default: return redact(value)
    }
  }

  /// A value of the same type that says nothing.
  private mutating func secret(_ value: JSON) -> JSON {
    switch value {
    case .string(let text):
      // A value that cannot be sent must stay one.
      let isInvalid = text.utf8.contains { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }
      let secret = isInvalid ? String(text.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7F }) : text
      return .string(placeholders.placeholder(for: secret) + (isInvalid ? "\n" : ""))
    case .integer, .number: return .integer(0)
    case .array(let elements): return .array(elements.map { secret($0) })
    case .object(let object): return .object(object.mapValues { secret($1) })
    case .null, .bool: return value
    }
  }
}

extension JSONObject {
  /// An object with the same names, in their order.
  func mapValues(_ transform: (_ name: String, _ value: JSON) -> JSON) -> JSONObject {
    JSONObject(distinct: members.map { Member(name: $0.name, value: transform($0.name, $0.value)) })
  }
}
