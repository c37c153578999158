internal import Text

/// Which loads wait for which decode: one for all that ask for the same.
///
/// A pure value, as the `Scheduler` is. A decode's priority is the highest of its loads'; when the last of them leaves,
/// it is of no use any more. A load may wait for two: for its answer, and for what it is shown until that is there.
struct DecodeCoalescer {
  /// What makes two decodes one.
  struct Work: Hashable {
    var key: ExactString
    var partition: String
    var varyKey: ExactString
    /// SHA-256 of the original.
    var original: [UInt8]
    /// The canonical form of the transform that has been applied to what is decoded, and of the one to apply.
    var from: String
    var to: String
    var step: DecodePlan.Step
    /// What may not be kept is not shared with what may, nor what was cleared with what came after.
    var keeping: Candidate.Retention
    /// Pixels are one load's own.
    var owner: LoadID?
  }

  /// A load's place at a decode.
  struct Subscription: Hashable {
    var load: LoadID
    /// False for what is only shown until the answer is there.
    var isFinal: Bool
  }

  struct Subscriber {
    /// The load's.
    var priority: Priority
    /// What the load's result will say of where the image came from.
    var status: CacheStatus
    /// Whether it goes first, whatever its load's priority is or becomes.
    var isUrgent = false

    fileprivate var urgency: Priority { isUrgent ? .highest : priority }
  }

  struct ID: Hashable {
    fileprivate let serial: UInt64
  }

  private struct Decode {
    let work: Work
    var subscribers: [Subscription: Subscriber] = [:]
    var byUrgency = PriorityCounts()
    var priority: Priority
    let hasJustArrived: Bool
    var isJoinable = true

    /// A guest comes, changes, or goes.
    mutating func set(_ subscriber: Subscriber?, at subscription: Subscription) {
      if let old = subscribers[subscription] { byUrgency[old.urgency] -= 1 }
      if let subscriber { byUrgency[subscriber.urgency] += 1 }
      subscribers[subscription] = subscriber
    }
  }

  private var decodes: [ID: Decode] = [:]
  private var byWork: [Work: ID] = [:]
  private var subscriptions: [Subscription: ID] = [:]
  private var lastSerial: UInt64 = 0
  /// Those of what has just come and was not in the cache.
  private(set) var arrived = PriorityCounts()

  var isEmpty: Bool { decodes.isEmpty }
  var seatCount: Int { subscriptions.count }

  enum EnqueueResult: Equatable {
    case created(ID)
    /// `raisedTo` when the decode has become more urgent by it.
    case joined(ID, raisedTo: Priority?)
  }

  /// A load takes a seat; it must not have it already.
  mutating func take(_ subscription: Subscription, as subscriber: Subscriber, for work: Work) -> EnqueueResult {
    if let id = byWork[work], let decode = decodes[id] {
      subscriptions[subscription] = id
      decodes[id]?.set(subscriber, at: subscription)
      guard subscriber.urgency > decode.priority else { return .joined(id, raisedTo: nil) }
      set(subscriber.urgency, asPriorityOf: id)
      return .joined(id, raisedTo: subscriber.urgency)
    }
    lastSerial += 1
    let id = ID(serial: lastSerial)
    var decode = Decode(work: work, priority: subscriber.urgency, hasJustArrived: subscriber.status == .miss)
    decode.set(subscriber, at: subscription)
    decodes[id] = decode
    count(decode, 1)
    byWork[work] = id
    subscriptions[subscription] = id
    return .created(id)
  }

  enum Change: Equatable {
    case priority(ID, Priority)
    /// Nobody waits for it any more, and it is gone from here.
    case abandoned(ID)
  }

  /// A load waits no more.
  mutating func leave(_ load: LoadID) -> [Change] {
    [true, false].compactMap { isFinal in
      let subscription = Subscription(load: load, isFinal: isFinal)
      guard let id = subscriptions.removeValue(forKey: subscription) else { return nil }
      decodes[id]?.set(nil, at: subscription)
      guard let decode = decodes[id], !decode.subscribers.isEmpty else {
        _ = end(id)
        return .abandoned(id)
      }
      return updatePriority(of: id)
    }
  }

  /// Nil for a load that waits for none or has that priority already.
  mutating func setPriority(_ priority: Priority, of load: LoadID) -> [Change]? {
    let own = [true, false].map { Subscription(load: load, isFinal: $0) }.filter { subscriptions[$0] != nil }
    guard own.contains(where: { subscription in subscriptions[subscription].map { decodes[$0]?.subscribers[subscription]?.priority != priority } ?? false })
    else { return nil }
    return own.compactMap { subscription in change(subscription) { $0.priority = priority } }
  }

  /// What the load is to be shown goes first from here on: its answer waits for that.
  mutating func boost(whatIsShownTo load: LoadID) -> Change? {
    change(Subscription(load: load, isFinal: false)) { $0.isUrgent = true }
  }

  private mutating func change(_ subscription: Subscription, _ body: (inout Subscriber) -> Void) -> Change? {
    guard let id = subscriptions[subscription], var subscriber = decodes[id]?.subscribers[subscription] else { return nil }
    body(&subscriber)
    decodes[id]?.set(subscriber, at: subscription)
    return updatePriority(of: id)
  }

  private mutating func updatePriority(of id: ID) -> Change? {
    guard let decode = decodes[id], let highest = decode.byUrgency.highest, highest != decode.priority else {
      return nil
    }
    set(highest, asPriorityOf: id)
    return .priority(id, highest)
  }

  private mutating func set(_ priority: Priority, asPriorityOf id: ID) {
    guard let decode = decodes[id] else { return }
    count(decode, -1)
    decodes[id]?.priority = priority
    if let decode = decodes[id] { count(decode, 1) }
  }

  private mutating func count(_ decode: Decode, _ change: Int) {
    if decode.hasJustArrived { arrived[decode.priority] += change }
  }

  /// Takes the decode out of reach of loads to come.
  mutating func detach(_ id: ID) {
    guard let decode = decodes[id], decode.isJoinable else { return }
    decodes[id]?.isJoinable = false
    byWork[decode.work] = nil
  }

  /// The decode is over: those that waited for it, in the order of their coming.
  mutating func end(_ id: ID) -> [(subscription: Subscription, subscriber: Subscriber)] {
    detach(id)
    guard let decode = decodes.removeValue(forKey: id) else { return [] }
    count(decode, -1)
    for subscription in decode.subscribers.keys { subscriptions[subscription] = nil }
    return subscribers(of: decode)
  }

  func subscribers(of id: ID) -> [(subscription: Subscription, subscriber: Subscriber)] { decodes[id].map(subscribers) ?? [] }

  private func subscribers(of decode: Decode) -> [(subscription: Subscription, subscriber: Subscriber)] {
    decode.subscribers.sorted { ($0.key.load, $0.key.isFinal ? 1 : 0) < ($1.key.load, $1.key.isFinal ? 1 : 0) }
      .map { ($0.key, $0.value) }
  }

  func priority(of id: ID) -> Priority? { decodes[id]?.priority }

  func contains(_ load: LoadID) -> Bool {
    [true, false].contains { subscriptions[Subscription(load: load, isFinal: $0)] != nil }
  }
}
