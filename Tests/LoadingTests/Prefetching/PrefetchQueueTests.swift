import HTTPTypes
import Testing

@testable import Loading

struct PrefetchQueueTests {
  private func items(_ count: Int, origin: (Int) -> Int = { _ in 0 }) throws -> [LoadRequest] {
    try (0..<count).map { number in
      let url = "http://h\(origin(number)).test/\(number)"
      return LoadRequest(url: url, source: .http(try ResourceURL(url)), key: url)
    }
  }

  private func drain(_ queue: inout PrefetchQueue) -> [Int32] {
    var taken: [Int32] = []
    while let next = queue.next() { taken.append(next.item) }
    return taken
  }

  @Test func `each item becomes a load once, in order`() throws {
    var queue = PrefetchQueue(try items(1000), limits: SchedulerLimits(), places: 1000)
    var seen: [Int32] = []
    while let (item, request, hasPlace) = queue.next() {
      #expect(hasPlace)
      #expect(queue.url(of: item) == request.url)
      queue.end(item)
      seen.append(item)
    }
    #expect(seen == Array(0..<1000))
    #expect(queue.isEmpty)
  }

  @Test func `with lifo the last item is first`() throws {
    var limits = SchedulerLimits()
    limits.order = .lifo
    var queue = PrefetchQueue(try items(3), limits: limits, places: 3)
    #expect(drain(&queue) == [2, 1, 0])
  }

  @Test func `an origin has a limited number of loads, and does not block other origins`() throws {
    let most = 512
    var queue = PrefetchQueue(
      try items(4 * most) { $0 < 3 * most ? 0 : 1 }, limits: SchedulerLimits(), places: 4 * most)
    let first = drain(&queue)
    #expect(first.count { $0 < 3 * most } == most)
    #expect(first.count { $0 >= 3 * most } == most)
    #expect(queue.heldBack.map(\.count) == [2 * most])
    #expect(queue.placesHeld == 2 * most)
    for item in first where item >= 3 * most { queue.end(item) }
    #expect(drain(&queue) == [], "what ends elsewhere makes no room here")
    queue.end(first[0])
    #expect(drain(&queue) == [Int32(most)])
    #expect(!queue.isEmpty)
  }

  @Test func `origins take turns`() throws {
    var queue = PrefetchQueue(try items(8) { $0 / 4 }, limits: SchedulerLimits(), places: 8)
    #expect(drain(&queue) == [0, 4, 1, 5, 2, 6, 3, 7])
  }

  @Test func `the total number of loads is limited`() throws {
    let most = 8192
    var queue = PrefetchQueue(try items(most + 10) { $0 }, limits: SchedulerLimits(), places: most + 10)
    #expect(drain(&queue).count == most)
    queue.end(5)
    #expect(drain(&queue).count == 1)
  }

  @Test func `higher limits permit more loads`() throws {
    var limits = SchedulerLimits()
    (limits.maxPerOrigin, limits.maxConcurrent) = (.fixed(500), .fixed(10_000))
    var queue = PrefetchQueue(try items(2000), limits: limits, places: 2000)
    #expect(drain(&queue).count == 1000)
    #expect(queue.maxTotal == 20_000)
  }

  @Test func `items without a reserved place are submitted when no others are left`() throws {
    let most = 512
    var queue = PrefetchQueue(try items(3 * most), limits: SchedulerLimits(), places: most)
    let loads = (0..<3 * most).compactMap { _ in queue.next() }
    #expect(loads.map(\.item) == Array(0..<Int32(3 * most)))
    #expect(loads.map(\.hasPlace) == Array(repeating: true, count: most) + Array(repeating: false, count: 2 * most))
    #expect(queue.next() == nil)
    #expect(queue.isEmpty)
  }

  @Test func `dropped items release their places`() throws {
    var queue = PrefetchQueue(try items(10), limits: SchedulerLimits(), places: 4)
    _ = queue.next()
    #expect(queue.dropAll() == 3)
    #expect(queue.next() == nil)
    #expect(queue.isEmpty)
  }

  @Test func `the items of an origin that is down are removed together`() throws {
    let most = 512
    var queue = PrefetchQueue(
      try items(2 * most + 5) { $0 < 2 * most ? 0 : 1 }, limits: SchedulerLimits(), places: 2 * most + 5)
    let origin = Origin(scheme: "http", host: "h0.test", port: 80)
    #expect(drain(&queue).count == most + 5)
    #expect(queue.takeAll(of: Origin(scheme: "http", host: "other.test", port: 80)) == [])
    #expect(queue.takeAll(of: origin) == Array(Int32(most)..<Int32(2 * most)))
    #expect(queue.placesHeld == 0)
    #expect(queue.isEmpty)
    #expect(queue.takeAll(of: origin) == [])
  }
}
