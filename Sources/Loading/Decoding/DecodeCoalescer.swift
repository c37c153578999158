internal import ImageCodec
internal import Text

/// Single flight for decodes: one decode for all loads that need the same work, and the loads that wait for it.
///
/// A pure value, as `Scheduler` is. The priority of a decode is the highest of its subscribers; it is abandoned when
/// the last of them unsubscribes. A load may subscribe to two decodes: one for its answer, and one for its `cached`
/// event.
struct DecodeCoalescer {
  /// The properties in which two loads must agree to share a decode.
  struct Work: Hashable {
    var key: ExactString
    var partition: String
    var varyKey: ExactString
    /// SHA-256 of the original.
    var original: [UInt8]
    /// The canonical form of the transform already applied to the source, and of the one to apply.
    var from: String
    var to: String
    var step: DecodePlan.Step
    /// The facts that a variant carries: a load that needs more of them does not join.
    var facts: FactSet = []
    /// Results that may be cached are not shared with those that may not, nor cleared ones with later ones.
    var retention: Candidate.Retention
    /// An image that is to be alone is not decoded beside others because a load that permits it came first.
    var isolation: DecodeTask.Isolation?
    /// The load, for pixels, which are never shared; otherwise nil.
    var owner: LoadID?
  }

  /// The role of a load in a decode.
  struct Subscription: Hashable {
    var load: LoadID
    var stage: DeliveryStage
  }

  struct Subscriber {
    /// The priority of the load.
    var priority: Priority
    /// The `cache` status that the load's result will report.
    var status: CacheStatus
    /// Whether the decode is urgent, whatever the priority of the load.
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

    /// Adds, changes or removes (nil) a subscriber.
    mutating func set(_ subscriber: Subscriber?, at subscription: Subscription) {
      if let old = subscribers[subscription] { byUrgency[old.urgency] -= 1 }
      if let subscriber { byUrgency[subscriber.urgency] += 1 }
      subscribers[subscription] = subscriber
    }
  }

  /// The stages in the order in which a load leaves its decodes.
  private static let stages = [DeliveryStage.answer, .cachedEvent]

  private var decodes: [ID: Decode] = [:]
  private var byWork: [Work: ID] = [:]
  private var subscriptions: [Subscription: ID] = [:]
  private var lastSerial: UInt64 = 0
  /// The number of decodes by priority whose source has just been transferred (`miss`).
  private(set) var arrived = PriorityCounts()

  var isEmpty: Bool { decodes.isEmpty }
  var subscriptionCount: Int { subscriptions.count }

  enum EnqueueResult: Equatable {
    case created(ID)
    /// `raisedTo` is the new priority of the decode if this subscriber raised it.
    case joined(ID, raisedTo: Priority?)
  }

  /// Subscribes a load, which must not have this subscription already.
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
    /// The last subscriber has gone; the decode has been removed.
    case abandoned(ID)
  }

  /// Removes all subscriptions of the load.
  mutating func leave(_ load: LoadID) -> [Change] {
    Self.stages.compactMap { stage in
      let subscription = Subscription(load: load, stage: stage)
      guard let id = subscriptions.removeValue(forKey: subscription) else { return nil }
      decodes[id]?.set(nil, at: subscription)
      guard let decode = decodes[id], !decode.subscribers.isEmpty else {
        _ = end(id)
        return .abandoned(id)
      }
      return updatePriority(of: id)
    }
  }

  /// Returns nil if the load has no subscription, or already has that priority.
  mutating func setPriority(_ priority: Priority, of load: LoadID) -> [Change]? {
    let own = Self.stages.map { Subscription(load: load, stage: $0) }.filter { subscriptions[$0] != nil }
    guard
      own.contains(where: { subscription in
        subscriptions[subscription].map { decodes[$0]?.subscribers[subscription]?.priority != priority } ?? false
      })
    else { return nil }
    return own.compactMap { subscription in change(subscription) { $0.priority = priority } }
  }

  /// Makes the decode for the load's `cached` event urgent: its answer waits for the event.
  mutating func boostCachedEvent(of load: LoadID) -> Change? {
    change(Subscription(load: load, stage: .cachedEvent)) { $0.isUrgent = true }
  }

  private mutating func change(_ subscription: Subscription, _ body: (inout Subscriber) -> Void) -> Change? {
    guard let id = subscriptions[subscription], var subscriber = decodes[id]?.subscribers[subscription] else {
      return nil
    }
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

  /// Closes the decode to further loads.
  mutating func detach(_ id: ID) {
    guard let decode = decodes[id], decode.isJoinable else { return }
    decodes[id]?.isJoinable = false
    byWork[decode.work] = nil
  }

  /// Removes the decode and returns its subscribers in the order in which their loads were submitted.
  mutating func end(_ id: ID) -> [(subscription: Subscription, subscriber: Subscriber)] {
    detach(id)
    guard let decode = decodes.removeValue(forKey: id) else { return [] }
    count(decode, -1)
    for subscription in decode.subscribers.keys { subscriptions[subscription] = nil }
    return subscribers(of: decode)
  }

  func subscribers(of id: ID) -> [(subscription: Subscription, subscriber: Subscriber)] {
    decodes[id].map(subscribers) ?? []
  }

  private func subscribers(of decode: Decode) -> [(subscription: Subscription, subscriber: Subscriber)] {
    decode.subscribers.sorted { ($0.key.load, $0.key.stage) < ($1.key.load, $1.key.stage) }
      .map { ($0.key, $0.value) }
  }

  func priority(of id: ID) -> Priority? { decodes[id]?.priority }

  func contains(_ load: LoadID) -> Bool {
    Self.stages.contains { subscriptions[Subscription(load: load, stage: $0)] != nil }
  }
}
