/// A simulated run: a list of loads, transferred under the control of windows, one for each host and one for all of
/// them.
///
/// It has the part of the scheduler that concerns windows: hosts take turns; a refused load and its host wait for half
/// a second at first; a load whose host cannot be reached is tried three times.
struct FlowRun {
  struct Result {
    var time = 0.0
    /// When nine tenths of the loads had ended.
    var most = 0.0
    var delivered = 0
    var refused = 0
    var overload = 0.0
    /// The number of answers in each tenth of a second.
    var answers: [Int] = []
    /// The windows of the first host and of all hosts, each tenth of a second.
    var windows: [(host: Int, all: Int)] = []
  }

  private struct Host<Window> {
    var window: Window
    var active = 0
    var waiting: [Int] = []
    var heldUntil = 0.0
    var epoch = 0
    var refusalsInARow = 0
    var isInTurns = false
  }

  static func run<Window: WindowController>(
    _ scenario: FlowScenario, seed: UInt64 = 1, host makeWindow: () -> Window, all makeTotal: () -> Window
  ) -> Result {
    var internet = SimulatedInternet(scenario.hosts, seed: seed)
    internet.processorTime = scenario.processorTime
    var hosts = scenario.hosts.map { _ in Host(window: makeWindow()) }
    var total = makeTotal()
    var active = 0
    var left = 0
    var result = Result()
    for (load, host) in scenario.loads.enumerated().reversed() {
      hosts[host].waiting.append(load)
      left += 1
    }
    let count = left
    var turns = Array(hosts.indices.filter { !hosts[$0].waiting.isEmpty })
    for host in turns { hosts[host].isInTurns = true }
    var head = 0
    var attempts = [Int](repeating: 0, count: left)
    var running: [Int: (load: Int, host: Int, start: Double, epoch: Int)] = [:]
    /// Retries of loads, and ends of suspensions of hosts, by time.
    var later: [(time: Double, host: Int, load: Int?)] = []

    func enter(_ host: Int) {
      guard !hosts[host].isInTurns, !hosts[host].waiting.isEmpty else { return }
      hosts[host].isInTurns = true
      turns.append(host)
    }
    func start() {
      while active < total.size, head < turns.count {
        let host = turns[head]
        head += 1
        hosts[host].isInTurns = false
        guard hosts[host].heldUntil <= internet.now, hosts[host].active < hosts[host].window.size,
          let load = hosts[host].waiting.popLast()
        else { continue }
        attempts[load] += 1
        hosts[host].active += 1
        active += 1
        hosts[host].window.started(at: internet.now)
        total.started(at: internet.now)
        running[internet.send(to: host)] = (load, host, internet.now, hosts[host].epoch)
        enter(host)
      }
      if head > 4096 {
        turns.removeFirst(head)
        head = 0
      }
    }
    start()
    while left > 0 {
      while Double(result.answers.count) * 0.1 <= internet.now {
        result.answers.append(0)
        result.windows.append((hosts[0].window.size, total.size))
      }
      let due = later.map(\.time).min() ?? .infinity
      if let (request, outcome) = internet.next(before: due),
        let (load, host, begin, epoch) = running.removeValue(forKey: request)
      {
        let now = internet.now
        switch outcome {
        case .answered:
          hosts[host].window.answered(active: hosts[host].active, latency: now - begin, at: now)
          total.answered(active: active, latency: now - begin, at: now)
          hosts[host].refusalsInARow = 0
          result.answers[result.answers.count - 1] += 1
          result.delivered += 1
          left -= 1
          if result.delivered == count * 9 / 10 { result.most = now }
        case .refused, .unreachable, .timedOut:
          if epoch == hosts[host].epoch {
            if outcome == .refused { hosts[host].window.refused(active: hosts[host].active, at: now) }
            hosts[host].epoch += 1
            hosts[host].refusalsInARow += 1
            let hold = 0.375 * Double(1 << min(hosts[host].refusalsInARow - 1, 6))
            hosts[host].heldUntil = now + hold
            later.append((now + hold, host, nil))
          }
          if outcome == .refused ? attempts[load] < 10 : attempts[load] < 3 {
            later.append((max(now + 0.25, hosts[host].heldUntil), host, load))
          } else {
            left -= 1
          }
        }
        hosts[host].active -= 1
        active -= 1
        enter(host)
      }
      for index in later.indices.reversed() where later[index].time <= internet.now {
        let (_, host, load) = later.remove(at: index)
        if let load { hosts[host].waiting.append(load) }
        enter(host)
      }
      start()
    }
    result.time = internet.now
    result.refused = internet.refusals
    result.overload = internet.longestOverload
    return result
  }
}
