import LineRPC
import Testing

struct RequestTrackerTests {
  private var tracker = RequestTracker()

  private func text(_ bytes: [UInt8]?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

  private mutating func accept(_ incoming: Incoming) -> [RequestTracker.Step] {
    switch incoming {
    case .call(let call): [tracker.accept(call)]
    case .batch(let calls): tracker.accept(batch: calls)
    }
  }

  private mutating func tokens(_ incoming: Incoming) -> [RequestToken] {
    accept(incoming).compactMap { if case .perform(_, let token) = $0 { token } else { nil } }
  }

  private mutating func lines(_ incoming: Incoming) -> [String] {
    accept(incoming).compactMap {
      if case .send(let line) = $0 { String(decoding: line, as: UTF8.self) } else { nil }
    }
  }

  private mutating func answer(_ token: RequestToken) -> String? {
    text(tracker.respond(to: token) { $0.value(true) })
  }

  private static let inUse =
    #"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"a request with this id is in flight","data":{"kind":"invalidRequest","retryable":false,"id":1}}}"#

  @Test mutating func `a request is performed and its result sent under its id`() throws {
    let steps = accept(.call(load(1)))
    guard case .perform(let request, let token)? = steps.first, steps.count == 1 else {
      Issue.record("one request is to be performed")
      return
    }
    #expect(request == Request(id: .integer(1), method: "load", params: [:]))
    #expect(token.id == .integer(1))
    #expect(answer(token) == #"{"jsonrpc":"2.0","id":1,"result":true}"# + "\n")
  }

  @Test mutating func `a request is answered with raw JSON or with an error`() throws {
    let first = try #require(tokens(.call(load(1))).first)
    #expect(
      text(tracker.respond(to: first) { $0.append(raw: Array(#"{"a":1}"#.utf8)) })
        == #"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"# + "\n")
    let second = try #require(tokens(Incoming(#"{"id":"é","method":"load"}"#)).first)
    #expect(
      text(tracker.respond(to: second, error: .internalError("m")))
        == #"{"jsonrpc":"2.0","id":"\u00e9","error":{"code":-32603,"message":"m","data":{"kind":"internal","retryable":false}}}"#
        + "\n")
  }

  @Test mutating func `a second response for a token is ignored`() throws {
    let token = try #require(tokens(.call(load(1))).first)
    #expect(answer(token) != nil)
    #expect(answer(token) == nil)
    #expect(tracker.respond(to: token, error: .internalError("m")) == nil)
    let again = try #require(tokens(.call(load(1))).first)
    #expect(answer(token) == nil)
    #expect(tracker.isOpen(again))
    #expect(tracker.unanswered == 1)
  }

  @Test mutating func `a notification is performed and never answered`() throws {
    let token = try #require(tokens(.call(load(nil))).first)
    #expect(token.id == nil)
    #expect(tracker.unanswered == 1)
    #expect(answer(token) == nil)
    #expect(tracker.unanswered == 0)
  }

  @Test mutating func `a notification that cannot be performed is reported, not answered`() {
    let error = RPCError.invalidParams(member: "params", "m")
    let call = Call.failedNotification(error, method: "load")
    #expect(accept(.call(call)) == [.failedNotification(error, method: "load")])
    #expect(accept(.batch([call])) == [.failedNotification(error, method: "load")])
    #expect(tracker.unanswered == 0)
  }

  @Test mutating func `a refusal is sent at once, with id null if there is no id`() {
    #expect(
      lines(.call(.refused(.parseError("m"), id: nil))) == [
        #"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m","data":{"kind":"parseError","retryable":false}}}"#
          + "\n"
      ])
    #expect(
      lines(.call(.refused(.invalidRequest("m"), id: .integer(4)))) == [
        #"{"jsonrpc":"2.0","id":4,"error":{"code":-32600,"message":"m","data":{"kind":"invalidRequest","retryable":false}}}"#
          + "\n"
      ])
  }

  @Test mutating func `an id in flight is refused with id null, and the first request is unaffected`() throws {
    let token = try #require(tokens(.call(load(1))).first)
    #expect(lines(.call(load(1))) == [Self.inUse + "\n"])
    #expect(lines(.call(.refused(.invalidRequest("method must be a string"), id: .integer(1)))) == [Self.inUse + "\n"])
    #expect(tracker.unanswered == 1)
    #expect(answer(token) == #"{"jsonrpc":"2.0","id":1,"result":true}"# + "\n")
    #expect(tokens(.call(load(1))).count == 1)
  }

  @Test mutating func `ids of different kinds do not clash`() {
    #expect(tokens(.call(load(1))).count == 1)
    #expect(tokens(Incoming(#"{"id":"1","method":"load"}"#)).count == 1)
  }

  @Test mutating func `a batch is answered by one line when its last response is ready`() throws {
    let tokens = tokens(.batch([load(1), load(2), load(3)]))
    #expect(tokens.map(\.id) == [.integer(1), .integer(2), .integer(3)])
    #expect(answer(tokens[2]) == nil)
    #expect(answer(tokens[0]) == nil)
    #expect(tracker.unanswered == 1)
    #expect(
      answer(tokens[1])
        == #"[{"jsonrpc":"2.0","id":3,"result":true},{"jsonrpc":"2.0","id":1,"result":true},{"jsonrpc":"2.0","id":2,"result":true}]"#
        + "\n")
    #expect(tracker.unanswered == 0)
  }

  @Test mutating func `notifications in a batch are performed in order and omitted from the answer`() {
    let tokens = tokens(.batch([load(nil), load(1), load(nil)]))
    #expect(tokens.map(\.id) == [nil, .integer(1), nil])
    #expect(answer(tokens[0]) == nil)
    #expect(answer(tokens[1]) == #"[{"jsonrpc":"2.0","id":1,"result":true}]"# + "\n")
    #expect(answer(tokens[2]) == nil)
  }

  @Test mutating func `a batch of notifications gets no answer at all`() {
    let steps = accept(.batch([load(nil), load(nil)]))
    #expect(steps.count == 2)
    for case .send in steps { Issue.record("nothing is sent") }
  }

  @Test mutating func `refused elements of a batch are in its answer`() throws {
    let refused = Call.refused(.invalidRequest("m"), id: nil)
    let error =
      #"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m","data":{"kind":"invalidRequest","retryable":false}}}"#
    #expect(lines(.batch([refused, refused])) == ["[\(error),\(error)]\n"])
    let token = try #require(tokens(.batch([refused, load(1)])).first)
    #expect(answer(token) == #"[\#(error),{"jsonrpc":"2.0","id":1,"result":true}]"# + "\n")
  }

  @Test mutating func `an id used twice in one batch is refused the second time`() throws {
    let tokens = tokens(.batch([load(1), load(1)]))
    #expect(tokens.count == 1)
    #expect(answer(tokens[0]) == #"[\#(Self.inUse),{"jsonrpc":"2.0","id":1,"result":true}]"# + "\n")
  }

  @Test mutating func `an id answered within a batch is in flight until the batch is sent`() throws {
    let batch = tokens(.batch([load(1), load(2)]))
    #expect(answer(batch[0]) == nil)
    #expect(answer(batch[0]) == nil)
    #expect(!tracker.isOpen(batch[0]))
    #expect(lines(.call(load(1))) == [Self.inUse + "\n"])
    #expect(answer(batch[1]) != nil)
    #expect(tokens(.call(load(1))).count == 1)
  }

  @Test mutating func `the id of a refused element is in flight until the batch is sent`() throws {
    let refused = Call.refused(.invalidRequest("m"), id: .integer(1))
    let batch = tokens(.batch([refused, load(1), load(2)]))
    #expect(batch.map(\.id) == [.integer(2)])
    let line = try #require(answer(batch[0]))
    #expect(line.contains(Self.inUse))
    #expect(tokens(.call(load(1))).count == 1)
  }

  @Test mutating func `an event has the request's id, and there is none after the response`() throws {
    let token = try #require(tokens(.call(load(1))).first)
    #expect(
      text(tracker.event("progress", about: token) { $0.member("received", 5) })
        == #"{"jsonrpc":"2.0","method":"progress","params":{"id":1,"received":5}}"# + "\n")
    _ = answer(token)
    #expect(tracker.event("progress", about: token) { $0.member("received", 6) } == nil)
  }

  @Test mutating func `an event about a notification has no id`() throws {
    let token = try #require(tokens(.call(load(nil))).first)
    #expect(
      text(tracker.event("completed", about: token) { $0.member("bytes", 5) })
        == #"{"jsonrpc":"2.0","method":"completed","params":{"bytes":5}}"# + "\n")
    _ = answer(token)
    #expect(tracker.event("completed", about: token) { _ in } == nil)
  }

  @Test mutating func `in any order of answers each id is answered once`() throws {
    let seed = UInt64.random(in: .min ... .max)
    var generator = SeededGenerator(seed: seed)
    var open: [RequestToken] = []
    var answered: [Int64] = []
    func record(_ line: [UInt8]?) throws {
      guard let line else { return }
      let value = try JSON(parsing: line)
      var responses = [value]
      if case .array(let elements) = value { responses = elements }
      for case .object(let response) in responses {
        if case .integer(let id)? = response["id"] { answered.append(id) }
      }
    }
    var next: Int64 = 0
    for _ in 0..<500 {
      let calls = (0..<Int.random(in: 1...4, using: &generator)).map { _ in
        next += 1
        return load(next)
      }
      open += tokens(calls.count == 1 ? .call(calls[0]) : .batch(calls))
      open.shuffle(using: &generator)
      for _ in 0..<Int.random(in: 0...open.count, using: &generator) {
        try record(tracker.respond(to: open.removeLast()) { $0.null() })
      }
      #expect(tracker.unanswered == open.count)
    }
    while let token = open.popLast() { try record(tracker.respond(to: token) { $0.null() }) }
    #expect(answered.sorted() == Array(1...next), "seed \(seed)")
  }
}
