public import Text

/// The content of one line, validated by JSON-RPC 2.0. Methods are not checked here.
public enum Incoming: Sendable, Equatable {
  case call(Call)
  /// Never empty.
  case batch([Call])
}

/// One call, or an invalid one.
public enum Call: Sendable, Equatable {
  case request(Request)
  /// Must be answered with the error at once. If the id is nil, the response's id is null.
  case refused(RPCError, id: RequestID?)
  /// An invalid notification. It must not be answered (JSON-RPC 2.0 section 4.1), whatever the error.
  case failedNotification(RPCError, method: String)
}

/// A request, or a notification if it has no id.
public struct Request: Sendable, Equatable {
  public let id: RequestID?
  public let method: String
  public let params: JSONObject
  /// The members of the request that JSON-RPC does not define.
  public var ignoredMembers: [String] = []

  public init(id: RequestID?, method: String, params: JSONObject) {
    self.id = id
    self.method = method
    self.params = params
  }
}

extension Incoming {
  /// Decodes a line. Stateless, so any thread may do it.
  public init(line: UnsafeRawBufferPointer) {
    do throws(JSONError) {
      self.init(try JSON(parsing: line))
    } catch {
      let example = error.offset == 0 ? #"; expected a request such as {"id":1,"method":"stats"}"# : ""
      let hint = error.offset > 0 && error.offset == line.count ? "; a message is one line" : example
      let message = "the line must be JSON: \(error.reason) at byte \(error.offset)\(hint)"
      self = .call(.refused(.parseError(message), id: nil))
    }
  }

  /// Largest number of calls in a batch: its responses are stored until the last one is there, and may be a hundred
  /// times as long as the calls.
  static let maxCalls = 100_000

  /// The result for a line that was skipped because it is too long.
  static func tooLong(limit: Int) -> Incoming {
    .call(.refused(.invalidRequest("a line must not be longer than \(limit) bytes"), id: nil))
  }

  init(_ value: JSON) {
    guard case .array(let elements) = value else {
      self = .call(Call(value))
      return
    }
    if elements.isEmpty {
      self = .call(.refused(.invalidRequest("a batch must have at least one call"), id: nil))
    } else if elements.count > Self.maxCalls {
      self = .call(.refused(.invalidRequest("a batch must not have more than \(Self.maxCalls) calls"), id: nil))
    } else {
      self = .batch(elements.map(Call.init))
    }
  }
}

extension Call {
  init(_ value: JSON) {
    guard case .object(let object) = value else {
      self = .refused(.invalidRequest("a request must be an object"), id: nil)
      return
    }
    var (idValue, version, methodValue, paramsValue): (JSON?, JSON?, JSON?, JSON?)
    var ignoredMembers: [String] = []
    for member in object.members {
      switch member.name {
      case "id": idValue = member.value
      case "jsonrpc": version = member.value
      case "method": methodValue = member.value
      case "params": paramsValue = member.value
      default: ignoredMembers.append(member.name)
      }
    }
    let id = idValue.flatMap(RequestID.init)
    guard idValue == nil || id != nil else {
      let message = "id must be an integer within ±(2^53-1) or a string of at most 256 bytes"
      self = .refused(.invalidRequest(message), id: nil)
      return
    }
    guard version == nil || version == .string("2.0") else {
      self = .refused(.invalidRequest("jsonrpc must be \"2.0\""), id: id)
      return
    }
    guard case .string(let method)? = methodValue else {
      self = .refused(.invalidRequest("method must be a string"), id: id)
      return
    }
    guard case .object(let params) = paramsValue ?? .object([:]) else {
      let error = RPCError.invalidParams(member: "params", "params must be an object")
      self = id == nil ? .failedNotification(error, method: method) : .refused(error, id: id)
      return
    }
    var request = Request(id: id, method: method, params: params)
    request.ignoredMembers = ignoredMembers
    self = .request(request)
  }
}

/// The id of a request, by which a host matches responses to requests.
public enum RequestID: Hashable, Sendable {
  /// Within ±(2^53 − 1), which every JSON library keeps exactly.
  case integer(Int64)
  /// At most 256 bytes of UTF-8.
  case string(ExactString)

  /// Fails for every value that is not a valid id, `null` included.
  public init?(_ value: JSON) {
    switch value {
    case .integer(let number) where number.magnitude < 1 << 53: self = .integer(number)
    case .string(let text) where text.utf8.count <= 256: self = .string(ExactString(text))
    default: return nil
    }
  }

  public var json: JSON {
    switch self {
    case .integer(let number): .integer(number)
    case .string(let string): .string(string.text)
    }
  }
}

extension JSONWriter {
  public mutating func value(_ id: RequestID) {
    switch id {
    case .integer(let number): value(number)
    case .string(let string): value(string.text)
    }
  }

  public mutating func member(_ name: StaticString, _ id: RequestID) {
    key(name)
    value(id)
  }
}
