/// What one line holds, checked as far as JSON-RPC 2.0 goes; which methods there are is not known here.
public enum Incoming: Sendable, Equatable {
  case call(Call)
  /// Never empty.
  case batch([Call])
}

/// One call, or what stands in the place of one.
public enum Call: Sendable, Equatable {
  case request(Request)
  /// To be answered with the error at once. Without an id the answer's id is null.
  case refused(RPCError, id: RequestID?)
  /// A notification that cannot be carried out. It must not be answered (JSON-RPC 2.0 section 4.1), whatever is wrong.
  case failedNotification(RPCError, method: String)
}

/// A request, or a notification if it has no id.
public struct Request: Sendable, Equatable {
  public let id: RequestID?
  public let method: String
  public let params: JSONObject

  public init(id: RequestID?, method: String, params: JSONObject) {
    self.id = id
    self.method = method
    self.params = params
  }
}

extension Incoming {
  /// Decodes a line. It keeps no state, so that any thread can do it.
  public init(line: UnsafeRawBufferPointer) {
    do throws(JSONError) {
      self.init(try JSON(parsing: line))
    } catch {
      self = .call(.refused(.parseError("the line must be JSON: \(error.reason) at byte \(error.offset)"), id: nil))
    }
  }

  /// The most calls of a batch: its answers are kept until the last is there, and may be a hundred times as long as what
  /// they answer.
  static let mostCalls = 100_000

  /// What stands in the place of a line that was skipped for its length.
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
    } else if elements.count > Self.mostCalls {
      self = .call(.refused(.invalidRequest("a batch must not have more than \(Self.mostCalls) calls"), id: nil))
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
    var id: RequestID?
    if let value = object["id"] {
      id = RequestID(value)
      if id == nil {
        let message = "id must be an integer within ±(2^53-1) or a string of at most 256 bytes"
        self = .refused(.invalidRequest(message), id: nil)
        return
      }
    }
    if let version = object["jsonrpc"], version != .string("2.0") {
      self = .refused(.invalidRequest("jsonrpc must be \"2.0\""), id: id)
      return
    }
    guard case .string(let method)? = object["method"] else {
      self = .refused(.invalidRequest("method must be a string"), id: id)
      return
    }
    switch object["params"] {
    case nil:
      self = .request(Request(id: id, method: method, params: JSONObject()))
    case .object(let params)?:
      self = .request(Request(id: id, method: method, params: params))
    default:
      let error = RPCError.invalidParams(member: "params", "params must be an object")
      self = id == nil ? .failedNotification(error, method: method) : .refused(error, id: id)
    }
  }
}
