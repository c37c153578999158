internal import Text

/// An error as it is sent: `{code, message, data: {kind, retryable, …}}`.
public struct RPCError: Error, Sendable, Equatable {
  public var code: Int
  /// For people. It may change; programs must use `kind`.
  public var message: String
  public var kind: String
  /// Whether the same request may succeed later.
  public var retryable: Bool
  /// Additional members of `data`.
  public var details: JSONObject

  public init(code: Int, message: String, kind: String, retryable: Bool = false, details: JSONObject = [:]) {
    self.code = code
    // The text that it quotes may have any length.
    self.message = message.utf8.count <= 2048 ? message : String(message.unicodeScalars.prefix(512)) + "…"
    self.kind = kind
    self.retryable = retryable
    self.details = details
  }
}

/// The five errors that JSON-RPC 2.0 defines (section 5.1).
extension RPCError {
  /// The line is not JSON.
  public static func parseError(_ message: String) -> RPCError {
    RPCError(code: -32700, message: message, kind: "parseError")
  }

  /// The line is JSON, but not a request.
  public static func invalidRequest(_ message: String, details: JSONObject = [:]) -> RPCError {
    RPCError(code: -32600, message: message, kind: "invalidRequest", details: details)
  }

  public static func methodNotFound(_ method: String, known: [String]) -> RPCError {
    RPCError(
      code: -32601, message: "unknown method \(method.quotable)\(hint(for: method, among: known))",
      kind: "methodNotFound")
  }

  /// - Parameter member: the invalid member of `params`, or `params` itself. It becomes `data.member`, truncated if it
  ///   is long, since a host may send a name of any length.
  public static func invalidParams(member: String, _ message: String) -> RPCError {
    RPCError(
      code: -32602, message: message, kind: "invalidParams", details: ["member": .string(member.quotable)])
  }

  public static func internalError(_ message: String) -> RPCError {
    RPCError(code: -32603, message: message, kind: "internal")
  }
}

extension String {
  /// The string, or its beginning if it is too long for an answer.
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
