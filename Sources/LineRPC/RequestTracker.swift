/// What is in flight between the host and the worker: which ids are taken, and which batches wait for responses.
///
/// Each accepted request gets a ticket, and each ticket is answered exactly once. An id is in flight until its response
/// is handed out as (part of) a line, which in a batch may be long after the response was given.
public struct RequestTracker: Sendable {
  /// What a program does for a request; hosts name it by the request's id.
  public typealias Work = AnyObject & Sendable

  /// What an incoming line asks for.
  public enum Step: Sendable, Equatable {
    /// To be carried out, then answered with `respond`; notifications too, so that `unanswered` tells when all is done.
    case perform(Request, RequestToken)
    /// A line to send at once.
    case send([UInt8])
    /// Nothing can be done and nothing may be answered; an event may tell the host.
    case failedNotification(RPCError, method: String)
  }

  private struct PendingRequest {
    let serial: UInt64
    var isAnswered: Bool
    var work: (any Work)?

    func isOpen(for token: RequestToken) -> Bool { serial == token.serial && !isAnswered }
  }

  /// The responses of a batch as far as they are there.
  private struct Batch {
    private var responses: [[UInt8]] = []
    var missing = 0
    /// What is in flight until the array is sent.
    private(set) var ids: [RequestID] = []
    /// Whether it holds nothing but notifications, and so gets no answer at all.
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

    /// All as one array.
    var line: [UInt8] {
      var array = JSONWriter(capacity: responses.reduce(3) { $0 + $1.count + 1 })
      array.beginArray()
      for response in responses { array.append(raw: response) }
      array.endArray()
      return array.line()
    }
  }

  private var holders: [RequestID: PendingRequest] = [:]
  private var notifications: Set<UInt64> = []
  private var batches: [UInt64: Batch] = [:]
  private var lastSerial: UInt64 = 0

  /// How many requests and notifications have been accepted and not answered.
  public private(set) var unanswered = 0
  /// Whether a request was refused as it stood.
  public private(set) var hasRefused = false

  public init() {}

  // MARK: Lines in

  /// Takes in a line of one call.
  public mutating func accept(_ call: Call) -> Step {
    switch take(call, in: nil) {
    case .performed(let request, let token): .perform(request, token)
    case .refused(let error, let id): .send(line(error, id: id))
    case .failedNotification(let error, let method): .failedNotification(error, method: method)
    }
  }

  /// Takes in a line that is a batch. The steps have to be taken in their order.
  public mutating func accept(batch calls: [Call]) -> [Step] {
    let number = nextSerial()
    var batch = Batch()
    var steps: [Step] = []
    for call in calls {
      switch take(call, in: number) {
      case .performed(let request, let token):
        steps.append(.perform(request, token))
        if let id = request.id { batch.await(id) }
      case .refused(let error, let id):
        if let id { holders[id] = PendingRequest(serial: number, isAnswered: true) }
        batch.refuse(error, id: id)
      case .failedNotification(let error, let method):
        steps.append(.failedNotification(error, method: method))
      }
    }
    if batch.isSilent { return steps }
    if let line = finishing(batch, number) { steps.append(.send(line)) }
    return steps
  }

  private enum Taken {
    case performed(Request, RequestToken)
    /// With the id of the response to be, which is null for an id that is in flight: that one belongs to another.
    case refused(RPCError, id: RequestID?)
    case failedNotification(RPCError, method: String)
  }

  private mutating func take(_ call: Call, in batch: UInt64?) -> Taken {
    switch call {
    case .request(let request):
      if let token = open(request, in: batch) { return .performed(request, token) }
      return refused(refusalOfTaken(request.id), id: nil)
    case .refused(_, let id?) where holders[id] != nil: return refused(refusalOfTaken(id), id: nil)
    case .refused(let error, let id): return refused(error, id: id)
    case .failedNotification(let error, let method): return .failedNotification(error, method: method)
    }
  }

  private mutating func refused(_ error: RPCError, id: RequestID?) -> Taken {
    hasRefused = true
    return .refused(error, id: id)
  }

  /// Nil when the request's id is in flight.
  private mutating func open(_ request: Request, in batch: UInt64?) -> RequestToken? {
    let token = RequestToken(id: request.id, serial: nextSerial(), batch: batch)
    if let id = request.id {
      if let first = holders.updateValue(PendingRequest(serial: token.serial, isAnswered: false), forKey: id) {
        holders[id] = first
        return nil
      }
    } else {
      notifications.insert(token.serial)
    }
    unanswered += 1
    return token
  }

  private func refusalOfTaken(_ id: RequestID?) -> RPCError {
    .invalidRequest("a request with this id is in flight", details: ["id": id?.json ?? .null])
  }

  private mutating func nextSerial() -> UInt64 {
    lastSerial += 1
    return lastSerial
  }

  /// Notes what is being done for a request. Nothing happens for a notification, or when it has been answered.
  public mutating func assign(_ work: any Work, to token: RequestToken) {
    guard let id = token.id, let index = holders.index(forKey: id), holders.values[index].isOpen(for: token) else {
      return
    }
    holders.values[index].work = work
  }

  /// What is being done for the request with that id; nil when there is none, or it has been answered.
  public func work(of id: RequestID) -> (any Work)? { holders[id]?.work }

  // MARK: Lines out

  /// Answers with a result, which `write` has to write as exactly one value.
  ///
  /// - Returns: the line to send now, with its LF. Nil when there is none: for a notification, while the other
  ///   responses of a batch are missing, and when the ticket was answered before.
  public mutating func respond(to token: RequestToken, _ write: (inout JSONWriter) -> Void) -> [UInt8]? {
    close(token) { writer, id in
      writer.beginResponse(id: id)
      writer.key("result")
      write(&writer)
      writer.endObject()
    }
  }

  /// Answers with a result that is JSON text already; else as `respond(to:_:)`.
  public mutating func respond(to token: RequestToken, raw json: [UInt8]) -> [UInt8]? {
    respond(to: token) { $0.append(raw: json) }
  }

  /// Answers with an error; else as `respond(to:_:)`.
  public mutating func respond(to token: RequestToken, error: RPCError) -> [UInt8]? {
    close(token) { writer, id in writer.response(error, id: id) }
  }

  /// An event about a request, as the line to send. Nil when the request has been answered: after that comes nothing.
  ///
  /// `params` starts with the request's id, if it has one; `write` writes the other members.
  ///
  /// - Parameter ticket: nil for an event about no request.
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

  /// Whether the ticket has not been answered.
  public func isOpen(_ token: RequestToken) -> Bool {
    guard let id = token.id else { return notifications.contains(token.serial) }
    return holders[id]?.isOpen(for: token) ?? false
  }

  private mutating func close(_ token: RequestToken, _ write: (inout JSONWriter, RequestID) -> Void) -> [UInt8]? {
    guard let id = token.id else {
      if notifications.remove(token.serial) != nil { unanswered -= 1 }
      return nil
    }
    guard let index = holders.index(forKey: id), holders.values[index].isOpen(for: token) else { return nil }
    unanswered -= 1
    guard let number = token.batch, var batch = batches.removeValue(forKey: number) else {
      holders.remove(at: index)
      var writer = JSONWriter(capacity: 480)
      write(&writer, id)
      return writer.line()
    }
    holders.values[index].isAnswered = true
    holders.values[index].work = nil
    batch.add { write(&$0, id) }
    batch.missing -= 1
    return finishing(batch, number)
  }

  /// The batch's line if it is complete; else the batch is kept.
  private mutating func finishing(_ batch: consuming Batch, _ number: UInt64) -> [UInt8]? {
    guard batch.missing == 0 else {
      batches[number] = batch
      return nil
    }
    for id in batch.ids { holders[id] = nil }
    return batch.line
  }

  private func line(_ error: RPCError, id: RequestID?) -> [UInt8] {
    var writer = JSONWriter(capacity: 256)
    writer.response(error, id: id)
    return writer.line()
  }
}

/// Stands for one accepted request until it is answered. Two tickets are never equal, even if their ids are.
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
