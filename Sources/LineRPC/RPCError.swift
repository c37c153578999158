/// An error as it goes over the wire: `{code, message, data: {kind, retryable, …}}`.
public struct RPCError: Error, Sendable, Equatable {
  public var code: Int
  /// For people. It may change; programs look at `kind`.
  public var message: String
  public var kind: String
  /// Whether the same request may succeed later.
  public var retryable: Bool
  /// The further members of `data`.
  public var details: JSONObject

  public init(code: Int, message: String, kind: String, retryable: Bool = false, details: JSONObject = [:]) {
    self.code = code
    // What it quotes may be of any length.
    self.message = message.utf8.count <= 2048 ? message : String(message.unicodeScalars.prefix(512)) + "…"
    self.kind = kind
    self.retryable = retryable
    self.details = details
  }
}

/// The five errors of JSON-RPC 2.0 itself (section 5.1 of its specification).
extension RPCError {
  /// The line is no JSON.
  public static func parseError(_ message: String) -> RPCError {
    RPCError(code: -32700, message: message, kind: "parseError")
  }

  /// The line is JSON, but no request.
  public static func invalidRequest(_ message: String, details: JSONObject = [:]) -> RPCError {
    RPCError(code: -32600, message: message, kind: "invalidRequest", details: details)
  }

  public static func methodNotFound(_ method: String) -> RPCError {
    RPCError(code: -32601, message: "unknown method \(method.quotable)", kind: "methodNotFound")
  }

  /// - Parameter member: the member of `params` that is at fault, or `params` itself; it goes into `data.member`, cut
  ///   when it is long, for a host may send a name of any length.
  public static func invalidParams(member: String, _ message: String) -> RPCError {
    RPCError(
      code: -32602, message: message, kind: "invalidParams", details: ["member": .string(member.quotable)])
  }

  public static func internalError(_ message: String) -> RPCError {
    RPCError(code: -32603, message: message, kind: "internal")
  }
}

extension String {
  /// The string, or its beginning if it is too long to be repeated in an answer.
  public var quotable: String {
    utf8.count <= 256 ? self : String(unicodeScalars.prefix(64)) + "…"
  }
}

extension JSONWriter {
  public mutating func value(_ error: RPCError) {
    beginObject()
    member("code", error.code)
    member("message", error.message)
    object("data") { writer in
      writer.member("kind", error.kind)
      writer.member("retryable", error.retryable)
      writer.members(of: error.details)
    }
    endObject()
  }

  public mutating func member(_ name: StaticString, _ error: RPCError) {
    key(name)
    value(error)
  }
}
