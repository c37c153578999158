import LineRPC
import Testing
import Text

struct IncomingTests {
  private func refusal(_ text: String) -> (error: RPCError, id: RequestID?)? {
    guard case .call(.refused(let error, let id)) = Incoming(text) else { return nil }
    return (error, id)
  }

  @Test func `a request has id, method and params`() {
    #expect(
      Incoming(#"{"jsonrpc":"2.0","id":"a","method":"load","params":{"url":"x"}}"#)
        == .call(.request(Request(id: .string("a"), method: "load", params: ["url": .string("x")]))))
  }

  @Test func `jsonrpc may be left out, and so may params`() {
    #expect(Incoming(#"{"id":1,"method":"load"}"#) == .call(load(1)))
  }

  @Test func `a request without id is a notification`() {
    #expect(Incoming(#"{"method":"load"}"#) == .call(load(nil)))
  }

  @Test func `members unknown to JSON-RPC are listed`() {
    var expected = Request(id: .integer(1), method: "load", params: [:])
    expected.ignoredMembers = ["trace", "url"]
    #expect(Incoming(#"{"id":1,"method":"load","trace":[1],"url":"x"}"#) == .call(.request(expected)))
  }

  @Test(arguments: ["{", "nonsense", #"{"id":1,"id":2,"method":"load"}"#, #"[{"id":1},]"#])
  func `a line that is not JSON is a parse error with id null`(text: String) {
    #expect(refusal(text)?.error.code == -32700)
    #expect(refusal(text)?.error.kind == "parseError")
    #expect(refusal(text)?.id == nil)
  }

  @Test(arguments: ["{", #"{"id":1,"#])
  func `the error for a line that ends too early tells that a message is one line`(text: String) {
    #expect(refusal(text)?.error.message.hasSuffix("; a message is one line") == true)
  }

  @Test(arguments: ["1", "null", #""load""#, "true", "[]", "{}", #"{"method":5}"#, #"{"params":{}}"#])
  func `JSON that is not a request is refused with id null`(text: String) {
    #expect(refusal(text)?.error.code == -32600)
    #expect(refusal(text)?.id == nil)
  }

  @Test(arguments: [
    #"{"id":1}"#, #"{"id":1,"method":null}"#, #"{"id":1,"jsonrpc":"1.0","method":"load"}"#,
    #"{"id":1,"jsonrpc":2.0,"method":"load"}"#, #"{"id":1,"jsonrpc":null,"method":"load"}"#, #"{"id":1,"result":{}}"#,
  ])
  func `an invalid request with a valid id is refused under that id`(text: String) {
    #expect(refusal(text)?.error.code == -32600)
    #expect(refusal(text)?.error.kind == "invalidRequest")
    #expect(refusal(text)?.id == .integer(1))
  }

  @Test(arguments: ["0", "9007199254740991", "-9007199254740991", #""""#, "\"\(String(repeating: "é", count: 128))\""])
  func `an id is an integer up to 2^53-1 or a string of up to 256 bytes`(id: String) throws {
    let expected = try #require(RequestID(JSON(id)))
    #expect(
      Incoming(#"{"id":\#(id),"method":"load"}"#) == .call(.request(Request(id: expected, method: "load", params: [:])))
    )
  }

  @Test(arguments: [
    "null", "true", "1.0", "1e3", "0.5", "[]", "{}", "9007199254740992", "-9007199254740992", "9223372036854775807",
    "-9223372036854775808", "123456789012345678901234567890", "\"\(String(repeating: "a", count: 257))\"",
    "\"\(String(repeating: "é", count: 129))\"",
  ])
  func `any other id is an invalid request with id null`(id: String) {
    let refusal = refusal(#"{"id":\#(id),"method":"load"}"#)
    #expect(refusal?.error.code == -32600)
    #expect(refusal?.id == nil)
  }

  @Test(arguments: ["null", "[]", "[1]", "1", #""x""#, "false"])
  func `params that are not an object are invalid, and the id is kept`(params: String) {
    let refusal = refusal(#"{"id":7,"method":"load","params":\#(params)}"#)
    #expect(refusal?.error.code == -32602)
    #expect(refusal?.error.details["member"] == .string("params"))
    #expect(refusal?.id == .integer(7))
  }

  @Test func `a notification with invalid params is not answered`() {
    guard case .call(.failedNotification(let error, let method)) = Incoming(#"{"method":"load","params":[1]}"#) else {
      Issue.record("it is a failed notification")
      return
    }
    #expect(error.code == -32602)
    #expect(method == "load")
  }

  @Test func `the calls of a batch are decoded independently`() {
    guard case .batch(let calls) = Incoming(#"[{"id":1,"method":"load"},1,[],{"method":"load"}]"#) else {
      Issue.record("it is a batch")
      return
    }
    #expect(calls.count == 4)
    #expect(calls[0] == load(1))
    #expect(calls[3] == load(nil))
    for call in calls[1...2] {
      guard case .refused(let error, nil) = call else {
        Issue.record("\(call) is refused")
        continue
      }
      #expect(error.code == -32600)
    }
  }

  @Test func `a batch of over 100,000 calls is refused as a whole`() {
    func line(_ count: Int) -> String { "[" + Array(repeating: "1", count: count).joined(separator: ",") + "]" }
    guard case .batch(let calls) = Incoming(line(100_000)) else {
      Issue.record("it is a batch")
      return
    }
    #expect(calls.count == 100_000)
    guard case .call(.refused(let error, nil)) = Incoming(line(100_001)) else {
      Issue.record("it is refused")
      return
    }
    #expect(error.code == -32600)
  }

  @Test func `ids are equal if their bytes are`() {
    #expect(RequestID.string("\u{E9}") != .string("e\u{301}"))
    #expect(RequestID.string("1") != .integer(1))
    #expect(Set([RequestID.string("a"), .string("a"), .integer(1), .integer(1)]).count == 2)
  }
}

struct RPCErrorTests {
  private func text(_ error: RPCError) -> String {
    var writer = JSONWriter()
    writer.value(error)
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  @Test func `the five errors of JSON-RPC have their codes and kinds`() {
    #expect(text(.parseError("m")) == #"{"code":-32700,"message":"m","data":{"kind":"parseError","retryable":false}}"#)
    #expect(
      text(.invalidRequest("m")) == #"{"code":-32600,"message":"m","data":{"kind":"invalidRequest","retryable":false}}"#
    )
    #expect(
      text(.methodNotFound("fly", known: ["load"]))
        == #"{"code":-32601,"message":"unknown method fly (known: load)","data":{"kind":"methodNotFound","retryable":false}}"#
    )
    #expect(
      text(.invalidParams(member: "url", "m"))
        == #"{"code":-32602,"message":"m","data":{"kind":"invalidParams","retryable":false,"member":"url"}}"#)
    #expect(text(.internalError("m")) == #"{"code":-32603,"message":"m","data":{"kind":"internal","retryable":false}}"#)
  }

  @Test func `unknown names of a host are truncated before they are repeated`() {
    let long = String(repeating: "\u{1F600}", count: 1_000_000)
    #expect(text(.methodNotFound(long, known: ["load"])).utf8.count < 2000)
    #expect(text(.invalidParams(member: long, "m")).utf8.count < 2000)
    let oneCharacter = "e" + String(repeating: "\u{301}", count: 1_000_000)
    #expect(text(.methodNotFound(oneCharacter, known: ["load"])).utf8.count < 2000)
  }
}
