/// Tracks the requests in flight between the host and the worker: their ids, and the batches that wait for responses.
///
/// Each accepted request gets a token, and each token is answered exactly once. An id is in flight until its response
/// is returned as a line or as part of one; in a batch that may be long after the request was answered.
public struct RequestTracker: Sendable {
  /// The program's work for a request, which a host refers to by the request's id.
  public typealias Work = AnyObject & Sendable

  /// The action that an incoming line requires.
  public enum Step: Sendable, Equatable {
    /// Perform the request, then call `respond`: also for a notification, which gets no answer but counts as
    /// `unanswered`.
    case perform(Request, RequestToken)
    /// Send this line at once.
    case send([UInt8])
    /// Do nothing and do not answer; an event may tell the host.
    case failedNotification(RPCError, method: String)
  }

  private struct PendingRequest {
    let serial: UInt64
    var isAnswered: Bool
    var work: (any Work)?

    func isOpen(for token: RequestToken) -> Bool { serial == token.serial && !isAnswered }
  }

  /// A batch and its responses so far.
  private struct Batch {
    private var responses: [[UInt8]] = []
    var missing = 0
    /// Ids that stay in flight until the array is sent.
    private(set) var ids: [RequestID] = []
    /// Whether the batch has notifications only, and so gets no answer.
    private(set) var isSilent = true

    mutating func await(_ id: RequestID) {
      isSilent = false
      missing += 1
      ids.append(id)
    }

    mutating func refuse(_ error: RPCError, id: RequestID?) {
      isSilent = false
      if let id { ids.append(id) }
      add { $0.response(error, id: id) }
    }

    mutating func add(_ write: (inout JSONWriter) -> Void) {
      var writer = JSONWriter(capacity: 480)
      write(&writer)
      responses.append(writer.bytes)
    }

    /// All responses as one array.
    var line: [UInt8] {
      var array = JSONWriter(capacity: responses.reduce(3) { $0 + $1.count + 1 })
      array.beginArray()
      for response in responses { array.append(raw: response) }
      array.endArray()
      return array.line()
    }
  }

  private var pending: [RequestID: PendingRequest] = [:]
  private var notifications: Set<UInt64> = []
  private var batches: [UInt64: Batch] = [:]
  private var lastSerial: UInt64 = 0

  /// Number of requests and notifications that were accepted and not answered yet.
  public private(set) var unanswered = 0
  /// Whether any request was refused as invalid.
  public private(set) var hasRefused = false

  public init() {}

  // MARK: Lines in

  /// Processes a line with one call.
  public mutating func accept(_ call: Call) -> Step {
    switch admit(call, in: nil) {
    case .performed(let request, let token): .perform(request, token)
    case .refused(let error, let id): .send(line(error, id: id))
    case .failedNotification(let error, let method): .failedNotification(error, method: method)
    }
  }

  /// Processes a line with a batch. The steps must be performed in their order.
  public mutating func accept(batch calls: [Call]) -> [Step] {
    let number = nextSerial()
    var batch = Batch()
    var steps: [Step] = []
    for call in calls {
      switch admit(call, in: number) {
      case .performed(let request, let token):
        steps.append(.perform(request, token))
        if let id = request.id { batch.await(id) }
      case .refused(let error, let id):
        if let id { pending[id] = PendingRequest(serial: number, isAnswered: true) }
        batch.refuse(error, id: id)
      case .failedNotification(let error, let method):
        steps.append(.failedNotification(error, method: method))
      }
    }
    if batch.isSilent { return steps }
    if let line = completeOrStore(batch, number) { steps.append(.send(line)) }
    return steps
  }

  private enum Admission {
    case performed(Request, RequestToken)
    /// With the id for the response. It is null if the id is in flight, since that id belongs to another request.
    case refused(RPCError, id: RequestID?)
    case failedNotification(RPCError, method: String)
  }

  private mutating func admit(_ call: Call, in batch: UInt64?) -> Admission {
    switch call {
    case .request(let request):
      if let token = open(request, in: batch) { return .performed(request, token) }
      return refused(duplicateIDError(request.id), id: nil)
    case .refused(_, let id?) where pending[id] != nil: return refused(duplicateIDError(id), id: nil)
    case .refused(let error, let id): return refused(error, id: id)
    case .failedNotification(let error, let method): return .failedNotification(error, method: method)
    }
  }

  private mutating func refused(_ error: RPCError, id: RequestID?) -> Admission {
    hasRefused = true
    return .refused(error, id: id)
  }

  /// Registers a request; nil if its id is in flight.
  private mutating func open(_ request: Request, in batch: UInt64?) -> RequestToken? {
    let token = RequestToken(id: request.id, serial: nextSerial(), batch: batch)
    if let id = request.id {
      if let first = pending.updateValue(PendingRequest(serial: token.serial, isAnswered: false), forKey: id) {
        pending[id] = first
        return nil
      }
    } else {
      notifications.insert(token.serial)
    }
    unanswered += 1
    return token
  }

  private func duplicateIDError(_ id: RequestID?) -> RPCError {
    .invalidRequest("a request with this id is in flight", details: ["id": id?.json ?? .null])
  }

  private mutating func nextSerial() -> UInt64 {
    lastSerial += 1
    return lastSerial
  }

  /// Records the work for a request. Ignored for a notification, and if the request has been answered.
  public mutating func assign(_ work: any Work, to token: RequestToken) {
    guard let id = token.id, let index = pending.index(forKey: id), pending.values[index].isOpen(for: token) else {
      return
    }
    pending.values[index].work = work
  }

  /// The work for the request with that id; nil if there is none or the request has been answered.
  public func work(of id: RequestID) -> (any Work)? { pending[id]?.work }

  // MARK: Lines out

  /// Answers with a result, which `write` must write as exactly one value.
  ///
  /// - Returns: the line to send now, with its LF. Nil for a notification, while other responses of the batch are
  ///   missing, and if the token was answered before.
  public mutating func respond(to token: RequestToken, _ write: (inout JSONWriter) -> Void) -> [UInt8]? {
    close(token) { writer, id in
      writer.beginResponse(id: id)
      writer.key("result")
      write(&writer)
      writer.endObject()
    }
  }

  /// Answers with an error; otherwise like `respond(to:_:)`.
  public mutating func respond(to token: RequestToken, error: RPCError) -> [UInt8]? {
    close(token) { writer, id in writer.response(error, id: id) }
  }

  /// Builds the line of an event about a request. Nil if the request has been answered, since nothing may follow the
  /// answer.
  ///
  /// `params` starts with the request's id, if it has one; `write` writes the other members.
  ///
  /// - Parameter token: nil for an event that is not about a request.
  public func event(_ name: StaticString, about token: RequestToken?, _ write: (inout JSONWriter) -> Void) -> [UInt8]? {
    if let token, !isOpen(token) { return nil }
    var writer = JSONWriter(capacity: 256)
    writer.object { writer in
      writer.member("jsonrpc", constant: "2.0")
      writer.member("method", constant: name)
      writer.object("params") { writer in
        if let id = token?.id { writer.member("id", id) }
        write(&writer)
      }
    }
    return writer.line()
  }

  /// Whether the token has not been answered.
  public func isOpen(_ token: RequestToken) -> Bool {
    guard let id = token.id else { return notifications.contains(token.serial) }
    return pending[id]?.isOpen(for: token) ?? false
  }

  private mutating func close(_ token: RequestToken, _ write: (inout JSONWriter, RequestID) -> Void) -> [UInt8]? {
    guard let id = token.id else {
      if notifications.remove(token.serial) != nil { unanswered -= 1 }
      return nil
    }
    guard let index = pending.index(forKey: id), pending.values[index].isOpen(for: token) else { return nil }
    unanswered -= 1
    guard let number = token.batch, var batch = batches.removeValue(forKey: number) else {
      pending.remove(at: index)
      var writer = JSONWriter(capacity: 480)
      write(&writer, id)
      return writer.line()
    }
    pending.values[index].isAnswered = true
    pending.values[index].work = nil
    batch.add { write(&$0, id) }
    batch.missing -= 1
    return completeOrStore(batch, number)
  }

  /// Returns the batch's line if the batch is complete; otherwise stores the batch.
  private mutating func completeOrStore(_ batch: consuming Batch, _ number: UInt64) -> [UInt8]? {
    guard batch.missing == 0 else {
      batches[number] = batch
      return nil
    }
    for id in batch.ids { pending[id] = nil }
    return batch.line
  }

  private func line(_ error: RPCError, id: RequestID?) -> [UInt8] {
    var writer = JSONWriter(capacity: 256)
    writer.response(error, id: id)
    return writer.line()
  }
}

/// Identifies an accepted request until it is answered. Two tokens are never equal, even if their ids are.
public struct RequestToken: Hashable, Sendable {
  /// Nil for a notification.
  public let id: RequestID?
  let serial: UInt64
  let batch: UInt64?

  public static func == (one: Self, other: Self) -> Bool { one.serial == other.serial }
  public func hash(into hasher: inout Hasher) { hasher.combine(serial) }
}

extension JSONWriter {
  fileprivate mutating func beginResponse(id: RequestID?) {
    beginObject()
    member("jsonrpc", constant: "2.0")
    if let id {
      member("id", id)
    } else {
      key("id")
      null()
    }
  }

  fileprivate mutating func response(_ error: RPCError, id: RequestID?) {
    beginResponse(id: id)
    member("error", error)
    endObject()
  }
}
