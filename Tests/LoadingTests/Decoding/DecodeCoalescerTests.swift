import Testing
import Text

@testable import Loading

struct DecodeCoalescerTests {
  private func work(_ to: String = "v1,w=1") -> DecodeCoalescer.Work {
    DecodeCoalescer.Work(
      key: "a", partition: "", varyKey: "", original: [1], from: "", to: to, step: .encode, retention: .allowed)
  }

  private func subscription(_ load: Int32, at stage: DeliveryStage = .answer) -> DecodeCoalescer.Subscription {
    DecodeCoalescer.Subscription(load: LoadID(load), stage: stage)
  }

  private func subscriber(_ priority: Priority = .normal, isUrgent: Bool = false) -> DecodeCoalescer.Subscriber {
    DecodeCoalescer.Subscriber(priority: priority, status: .miss, isUrgent: isUrgent)
  }

  private func created(_ arrival: DecodeCoalescer.EnqueueResult) throws -> DecodeCoalescer.ID {
    guard case .created(let id) = arrival else { throw Unexpected() }
    return id
  }

  private struct Unexpected: Error {}

  @Test func `equal requests share a decode, in the order of subscription`() throws {
    var sharing = DecodeCoalescer()
    let id = try created(sharing.take(subscription(2), as: subscriber(), for: work()))
    #expect(sharing.take(subscription(1), as: subscriber(), for: work()) == .joined(id, raisedTo: nil))
    _ = try created(sharing.take(subscription(3), as: subscriber(), for: work("v1,w=2")))
    #expect(sharing.end(id).map(\.subscription) == [subscription(1), subscription(2)])
    #expect(sharing.end(id).isEmpty)
    #expect(!sharing.contains(LoadID(1)) && sharing.contains(LoadID(3)))
  }

  @Test func `a decode has the highest priority of its subscribers`() throws {
    var sharing = DecodeCoalescer()
    let id = try created(sharing.take(subscription(1), as: subscriber(.low), for: work()))
    #expect(sharing.take(subscription(2), as: subscriber(.high), for: work()) == .joined(id, raisedTo: .high))
    #expect(sharing.take(subscription(3), as: subscriber(.normal), for: work()) == .joined(id, raisedTo: nil))
    #expect(sharing.leave(LoadID(2)) == [.priority(id, .normal)])
    #expect(sharing.setPriority(.highest, of: LoadID(1)) == [.priority(id, .highest)])
    #expect(sharing.setPriority(.highest, of: LoadID(1)) == nil)
    #expect(sharing.setPriority(.lowest, of: LoadID(3)) == [])
    #expect(sharing.leave(LoadID(1)) == [.priority(id, .lowest)])
  }

  @Test func `waiting decodes of transferred images are counted by priority`() throws {
    var sharing = DecodeCoalescer()
    let id = try created(sharing.take(subscription(1), as: subscriber(.low), for: work()))
    _ = try created(sharing.take(subscription(2), as: .init(priority: .low, status: .disk), for: work("v1,w=2")))
    #expect(sharing.arrived.total == 1 && sharing.arrived[.low] == 1)
    _ = sharing.take(subscription(3), as: subscriber(.high), for: work())
    #expect(sharing.arrived.total == 1 && sharing.arrived[.high] == 1)
    _ = sharing.setPriority(.normal, of: LoadID(3))
    #expect(sharing.arrived.total == 1 && sharing.arrived[.normal] == 1)
    _ = sharing.end(id)
    _ = sharing.leave(LoadID(2))
    #expect(sharing.arrived == PriorityCounts())
    _ = sharing.take(subscription(4), as: subscriber(.low), for: work())
    _ = sharing.leave(LoadID(4))
    #expect(sharing.arrived == PriorityCounts())
  }

  @Test func `an urgent decode stays urgent after a change of its load's priority`() throws {
    var sharing = DecodeCoalescer()
    let id = try created(sharing.take(subscription(1), as: subscriber(isUrgent: true), for: work()))
    #expect(sharing.priority(of: id) == .highest)
    #expect(sharing.setPriority(.normal, of: LoadID(1)) == nil)
    for other in [Priority.low, .high, .highest, .normal] {
      #expect(sharing.setPriority(other, of: LoadID(1)) == [])
    }
    #expect(sharing.take(subscription(2), as: subscriber(.low), for: work()) == .joined(id, raisedTo: nil))
    #expect(sharing.leave(LoadID(1)) == [.priority(id, .low)])
  }

  @Test func `boost makes the decode of the cached event urgent, and not that of the answer`() throws {
    var sharing = DecodeCoalescer()
    let shown = try created(sharing.take(subscription(1, at: .cachedEvent), as: subscriber(), for: work("old")))
    _ = try created(sharing.take(subscription(1), as: subscriber(), for: work("new")))
    #expect(sharing.boostCachedEvent(of: LoadID(1)) == .priority(shown, .highest))
    #expect(sharing.boostCachedEvent(of: LoadID(1)) == nil)
    #expect(sharing.boostCachedEvent(of: LoadID(2)) == nil)
  }

  @Test func `a decode is abandoned when its last subscriber leaves`() throws {
    var sharing = DecodeCoalescer()
    let id = try created(sharing.take(subscription(1), as: subscriber(), for: work()))
    _ = sharing.take(subscription(2), as: subscriber(), for: work())
    #expect(sharing.leave(LoadID(1)) == [])
    #expect(sharing.leave(LoadID(2)) == [.abandoned(id)])
    #expect(sharing.leave(LoadID(2)) == [])
    #expect(sharing.isEmpty)
    #expect(try created(sharing.take(subscription(3), as: subscriber(), for: work())) != id)
  }

  @Test func `a load with a cached event leaves both decodes`() throws {
    var sharing = DecodeCoalescer()
    let shown = try created(sharing.take(subscription(1, at: .cachedEvent), as: subscriber(), for: work("old")))
    let final = try created(sharing.take(subscription(1), as: subscriber(), for: work("new")))
    #expect(sharing.leave(LoadID(1)) == [.abandoned(final), .abandoned(shown)])
    #expect(sharing.isEmpty)
  }

  @Test func `a detached decode accepts no subscribers and still serves those it has`() throws {
    var sharing = DecodeCoalescer()
    let id = try created(sharing.take(subscription(1), as: subscriber(), for: work()))
    sharing.detach(id)
    let next = try created(sharing.take(subscription(2), as: subscriber(), for: work()))
    #expect(sharing.end(id).map(\.subscription) == [subscription(1)])
    #expect(sharing.take(subscription(3), as: subscriber(), for: work()) == .joined(next, raisedTo: nil))
  }
}
