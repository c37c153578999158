/// A list of loads and the hosts that they go to.
struct FlowScenario {
  let name: String
  let hosts: [SimulatedHost]
  /// The host of each load, in the order of submission.
  let loads: [Int]
  var processorTime = 0.0005

  /// The initial window of a host: connections of HTTP/1.1, or streams of HTTP/2.
  var initial = 6
  var maxPerHost = 256

  init(_ name: String, hosts: [SimulatedHost], loads: Int) {
    self.name = name
    self.hosts = hosts
    self.loads = (0..<loads).map { $0 % hosts.count }
  }

  static let all: [FlowScenario] = {
    var list: [FlowScenario] = []
    func add(_ name: String, _ count: Int = 1, loads: Int, _ change: (inout SimulatedHost) -> Void) {
      var host = SimulatedHost()
      change(&host)
      list.append(FlowScenario(name, hosts: Array(repeating: host, count: count), loads: loads))
    }
    add("wide", 2000, loads: 8000) { ($0.serviceTime, $0.spread, $0.servers) = (0.15, 0.6, [(0, 8)]) }
    add("wider", 5000, loads: 20000) { ($0.serviceTime, $0.spread, $0.servers) = (0.15, 0.6, [(0, 8)]) }
    add("strong", loads: 3000) { ($0.serviceTime, $0.servers) = (0.08, [(0, 64)]) }
    add("strong, irregular", loads: 3000) { ($0.serviceTime, $0.spread, $0.servers) = (0.08, 0.8, [(0, 64)]) }
    add("weak", loads: 300) { ($0.serviceTime, $0.servers) = (0.055, [(0, 3)]) }
    add("one at a time", loads: 200) { ($0.serviceTime, $0.servers) = (0.05, [(0, 1)]) }
    add("near", loads: 3000) { ($0.serviceTime, $0.roundTrip, $0.servers) = (0.004, 0.001, [(0, 16)]) }
    add("far", loads: 3000) { ($0.serviceTime, $0.roundTrip, $0.servers) = (0.02, 0.3, [(0, 16)]) }
    add("limited", loads: 800) { ($0.serviceTime, $0.maxAtOnce) = (0.058, 8) }
    add("bucket", loads: 1500) { ($0.serviceTime, $0.bucket) = (0.04, (50, 100)) }
    add("thin line", loads: 1000) { ($0.serviceTime, $0.lineRate) = (0.1, 60) }
    add("step", loads: 6000) { ($0.serviceTime, $0.servers) = (0.08, [(0, 16), (15, 4), (35, 16)]) }
    add("http2", loads: 2000) { ($0.serviceTime, $0.servers) = (0.03, [(0, 100)]) }
    list[list.count - 1].initial = 16
    list[list.count - 1].maxPerHost = 100
    add("forty", 40, loads: 20000) { ($0.serviceTime, $0.servers) = (0.1, [(0, 12)]) }
    return list
  }()
}
