import Platform
@testable import Loading

/// A controller of the number of concurrent requests, driven by their outcomes.
protocol WindowController {
  var size: Int { get }
  mutating func started(at now: Double)
  /// - Parameter active: the number of running requests, including this one.
  mutating func answered(active: Int, latency: Double, at now: Double)
  mutating func refused(active: Int, at now: Double)
}

/// A fixed number.
struct FixedWindow: WindowController {
  var size: Int
  mutating func started(at now: Double) {}
  mutating func answered(active: Int, latency: Double, at now: Double) {}
  mutating func refused(active: Int, at now: Double) {}
}

/// The plateau of throughput, as in the worker.
struct PlateauWindow: WindowController {
  private var window: ConcurrencyWindow
  init(initial: Int, max: Int) { window = ConcurrencyWindow(.init(initial: initial, max: max)) }
  var size: Int { window.size }
  mutating func started(at now: Double) { window.started(at: instant(now)) }
  mutating func answered(active: Int, latency: Double, at now: Double) {
    window.answered(active: active, at: instant(now))
  }
  mutating func refused(active: Int, at now: Double) { window.refused(active: active, at: instant(now)) }
}

private let epoch = Instant.now
func instant(_ seconds: Double) -> Instant { epoch.advanced(by: .seconds(seconds)) }

/// The gradient of latency, as in Netflix's concurrency-limits (Gradient2Limit): the limit follows the ratio of the
/// long average of the latency to the short one.
struct GradientWindow: WindowController {
  private var limit: Double
  private let max: Double
  private var long = 0.0
  private var answers = 0
  private static let tolerance = 1.5
  private static let smoothing = 0.2

  init(initial: Int, max: Int) { (limit, self.max) = (Double(initial), Double(max)) }
  var size: Int { Int(limit) }
  mutating func started(at now: Double) {}
  mutating func answered(active: Int, latency: Double, at now: Double) {
    answers += 1
    let weight = answers < 10 ? 1 / Double(answers) : 2.0 / 601
    long += weight * (latency - long)
    // If the long average is far above the short one, it decays, so that the limit recovers after an overload.
    if long / latency > 2 { long *= 0.95 }
    guard Double(active) >= limit / 2 else { return }
    let gradient = Swift.max(0.5, min(1, Self.tolerance * long / latency))
    let new = limit * gradient + 4
    limit = Swift.max(1, min(max, limit * (1 - Self.smoothing) + new * Self.smoothing))
  }
  mutating func refused(active: Int, at now: Double) { limit = Swift.max(1, limit / 2) }
}

/// An estimate of the bandwidth-delay product, after BBR (draft-ietf-ccwg-bbr): the maximum throughput of the last
/// rounds times the minimum latency of the last ten seconds, with gains in turns.
struct ProductWindow: WindowController {
  private static let gains = [1.25, 0.75, 1, 1, 1, 1, 1, 1]
  private var limit: Double
  private let max: Double
  private var rates: [Double] = []
  private var latencies: [(time: Double, value: Double)] = []
  private var isStartingUp = true
  private var fullRounds = 0
  private var best = 0.0
  private var round = 0
  private var answers = 0
  private var begin: Double?

  init(initial: Int, max: Int) { (limit, self.max) = (Double(initial), Double(max)) }
  var size: Int { Int(limit) }
  mutating func started(at now: Double) { begin = begin ?? now }
  mutating func answered(active: Int, latency: Double, at now: Double) {
    answers += 1
    while let last = latencies.last, last.value >= latency { latencies.removeLast() }
    latencies.append((now, latency))
    while let first = latencies.first, first.time < now - 10 { latencies.removeFirst() }
    guard answers >= Swift.max(8, size), let start = begin else { return }
    let rate = Double(answers) / Swift.max(now - start, 1e-6)
    let wasFull = active >= size
    (answers, begin) = (0, now)
    guard wasFull else { return }
    rates.append(rate)
    if rates.count > 10 { rates.removeFirst() }
    round += 1
    let product = rates.max()! * latencies[0].value
    if isStartingUp {
      if rate > 1.25 * best { (best, fullRounds) = (rate, 0) } else { fullRounds += 1 }
      if fullRounds >= 3 { isStartingUp = false }
      // Twice the product, like cwnd_gain in start-up.
      limit = Swift.max(limit, 2.885 * product)
    } else {
      limit = 2 * product * Self.gains[round % Self.gains.count]
    }
    limit = Swift.max(1, min(max, limit))
  }
  mutating func refused(active: Int, at now: Double) {
    (isStartingUp, rates) = (false, rates.map { $0 / 2 })
    limit = Swift.max(1, limit / 2)
  }
}
