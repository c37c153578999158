import Foundation

/// A simulated host: its capacity, its latency, and its refusals.
struct SimulatedHost {
  /// How many requests it processes at once, by start time. Further requests are queued.
  var servers: [(from: Double, count: Int)] = [(0, .max)]
  /// The median processing time, and its variation (sigma of the log-normal distribution).
  var serviceTime = 0.1
  var spread = 0.3
  var roundTrip = 0.02
  /// The number of concurrent requests beyond which it answers 429 at once.
  var maxAtOnce = Int.max
  /// The rate limit in requests per second, after an initial burst: excess requests are answered with 429.
  var bucket: (rate: Double, burst: Double)?
  /// The answers per second that its network link carries, one after the other.
  var lineRate: Double?
  var manner = Manner.serves

  enum Manner {
    case serves
    /// No listener: the connection is refused after a round trip.
    case refusesConnections
    /// Accepts the request and never answers.
    case silent
  }
}

/// The outcome of a request.
enum SimulatedOutcome {
  case answered, refused, unreachable, timedOut
}

/// Hosts, a network and a processor as discrete events: nothing here sleeps or opens a socket, and two runs with the
/// same seed are identical. Times are seconds since the start.
struct SimulatedInternet {
  private struct HostState {
    var host: SimulatedHost
    var active = 0
    var queue: [Int] = []
    var queueHead = 0
    var tokens: Double
    var tokensAt = 0.0
    var lineFreeAt = 0.0
    /// Requests in transit or at the host, as the host would count connections.
    var inside = 0
    var overloadedSince: Double?
    var longestOverload = 0.0
    var mostInside = 0
  }

  private enum Event {
    case arrive(request: Int), served(request: Int), deliver(request: Int, SimulatedOutcome)
    case finish(request: Int, SimulatedOutcome)
  }

  /// The processor time per answer; answers are processed one after the other.
  var processorTime = 0.0005
  var timeout = 3.0
  private(set) var now = 0.0
  private(set) var refusals = 0

  private var hosts: [HostState]
  private var requests: [Int] = []
  private var events: [(time: Double, number: Int, event: Event)] = []
  private var lastNumber = 0
  private var processorFreeAt = 0.0
  private var random: SeededChance

  init(_ hosts: [SimulatedHost], seed: UInt64 = 1) {
    self.hosts = hosts.map { HostState(host: $0, tokens: $0.bucket?.burst ?? 0) }
    random = SeededChance(state: seed)
  }

  /// The longest time for which a host had over twice the requests that it can serve, in seconds.
  var longestOverload: Double { hosts.map(\.longestOverload).max() ?? 0 }

  /// Sends a request to a host; `next` returns its outcome.
  ///
  /// - Returns: its number.
  mutating func send(to host: Int) -> Int {
    let request = requests.count
    requests.append(host)
    change(host, by: 1)
    add(.arrive(request: request), after: hosts[host].host.roundTrip / 2)
    return request
  }

  /// The next request that ends; nil if none is under way. Stops at `limit` if none has ended by then.
  mutating func next(before limit: Double = .infinity) -> (request: Int, outcome: SimulatedOutcome)? {
    while let first = events.first {
      guard first.time <= limit else {
        now = max(now, limit)
        return nil
      }
      pop()
      now = first.time
      switch first.event {
      case .arrive(let request): arrive(request)
      case .served(let request): served(request)
      case .deliver(let request, let outcome):
        change(requests[request], by: -1)
        // The program handles answers one after the other.
        processorFreeAt = max(processorFreeAt, now) + processorTime
        add(.finish(request: request, outcome), after: processorFreeAt - now)
      case .finish(let request, let outcome): return (request, outcome)
      }
    }
    if limit.isFinite { now = max(now, limit) }
    return nil
  }

  private mutating func arrive(_ request: Int) {
    let id = requests[request]
    let host = hosts[id].host
    switch host.manner {
    case .refusesConnections: return deliver(request, .unreachable, after: host.roundTrip / 2)
    case .silent: return deliver(request, .timedOut, after: timeout)
    case .serves: break
    }
    if let bucket = host.bucket {
      let tokens = min(bucket.burst, hosts[id].tokens + (now - hosts[id].tokensAt) * bucket.rate)
      hosts[id].tokensAt = now
      hosts[id].tokens = tokens >= 1 ? tokens - 1 : tokens
      if tokens < 1 { return refuse(request) }
    }
    if hosts[id].active + hosts[id].queue.count - hosts[id].queueHead >= host.maxAtOnce { return refuse(request) }
    hosts[id].queue.append(request)
    serveNext(id)
  }

  private mutating func refuse(_ request: Int) {
    refusals += 1
    deliver(request, .refused, after: hosts[requests[request]].host.roundTrip / 2)
  }

  private mutating func serveNext(_ id: Int) {
    while hosts[id].active < capacity(of: id), hosts[id].queueHead < hosts[id].queue.count {
      let request = hosts[id].queue[hosts[id].queueHead]
      hosts[id].queueHead += 1
      hosts[id].active += 1
      let time = hosts[id].host.serviceTime * random.logNormal(spread: hosts[id].host.spread)
      add(.served(request: request), after: time)
    }
  }

  private mutating func served(_ request: Int) {
    let id = requests[request]
    hosts[id].active -= 1
    var delay = hosts[id].host.roundTrip / 2
    if let rate = hosts[id].host.lineRate {
      hosts[id].lineFreeAt = max(hosts[id].lineFreeAt, now) + 1 / rate
      delay += hosts[id].lineFreeAt - now
    }
    deliver(request, .answered, after: delay)
    serveNext(id)
  }

  private mutating func deliver(_ request: Int, _ outcome: SimulatedOutcome, after delay: Double) {
    add(.deliver(request: request, outcome), after: delay)
  }

  private func capacity(of id: Int) -> Int { hosts[id].host.servers.last { $0.from <= now }?.count ?? 1 }

  /// Records how long a host has more than twice the requests that it can serve.
  private mutating func change(_ id: Int, by difference: Int) {
    hosts[id].inside += difference
    let limit = min(capacity(of: id), hosts[id].host.maxAtOnce)
    guard limit < .max, hosts[id].host.manner == .serves else { return }
    if hosts[id].inside > 2 * limit {
      let since = hosts[id].overloadedSince ?? now
      hosts[id].overloadedSince = since
      hosts[id].longestOverload = max(hosts[id].longestOverload, now - since)
    } else {
      hosts[id].overloadedSince = nil
    }
  }

  // MARK: - Events, a heap by time

  private mutating func add(_ event: Event, after delay: Double) {
    lastNumber += 1
    events.append((now + delay, lastNumber, event))
    var child = events.count - 1
    while child > 0, isEarlier(child, (child - 1) / 2) {
      events.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  private mutating func pop() {
    events.swapAt(0, events.count - 1)
    events.removeLast()
    var parent = 0
    while true {
      var smallest = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < events.count && isEarlier(child, smallest) {
        smallest = child
      }
      guard smallest != parent else { return }
      events.swapAt(parent, smallest)
      parent = smallest
    }
  }

  private func isEarlier(_ left: Int, _ right: Int) -> Bool {
    (events[left].time, events[left].number) < (events[right].time, events[right].number)
  }
}

extension RandomNumberGenerator {
  /// A factor around 1: a log-normal distribution with median 1 and this sigma.
  mutating func logNormal(spread: Double) -> Double {
    let (first, second) = (Double.random(in: 1e-12...1, using: &self), Double.random(in: 0...1, using: &self))
    return exp(spread * (-2 * log(first)).squareRoot() * cos(2 * .pi * second))
  }
}
