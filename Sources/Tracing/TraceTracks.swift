internal import LineRPC

/// Identifies a group. It is cheaper to make than the name of the group.
public struct TraceGroupKey: Sendable, Hashable {
  private let text: String
  private let number: Int

  public init(_ text: String, _ number: Int) { (self.text, self.number) = (text, number) }
}

/// A group of rows of a trace: a process, in the terms of the format.
public final class TraceGroup {
  let pid: Int
  let name: String
  /// The place of the group.
  let sortIndex: Int
  fileprivate(set) var rows: [Int: TraceRow] = [:]
  fileprivate var lanes = TraceLanes()
  fileprivate var laneRows: [TraceRow] = []
  fileprivate var companion: TraceGroup?

  fileprivate init(pid: Int, name: String, sortIndex: Int) {
    (self.pid, self.name, self.sortIndex) = (pid, name, sortIndex)
  }
}

/// A row of a group: a thread, in the terms of the format.
public final class TraceRow {
  let pid: Int
  let tid: Int
  let name: String
  /// The members of an event up to its time.
  let text: [UInt8]

  init(pid: Int, tid: Int, name: String) {
    (self.pid, self.tid, self.name) = (pid, tid, name)
    var text = OutputText(capacity: 64)
    text.append("\"pid\":")
    text.append(decimal: Int64(pid))
    text.append(",\"tid\":")
    text.append(decimal: Int64(tid))
    text.append(",\"ts\":")
    self.text = text.bytes
  }
}

/// The groups of a trace.
struct TraceTracks {
  /// The number of the group of this process itself.
  static let worker = 1
  /// The number of the first lane's row.
  static let firstLane = 1000
  /// The offset of the number of a group that comes after the others.
  private static let lastGroups = 1_000_000
  private static let others = TraceGroupKey("", -1)

  /// The largest number of groups, companions not included. Further ones share one.
  private static let maxGroups = 2000
  let worker: TraceGroup
  private var groups: [TraceGroupKey: TraceGroup] = [:]
  private var lastPID = Self.worker

  /// - Parameter name: the name of the process.
  init(name: String) { worker = TraceGroup(pid: Self.worker, name: name, sortIndex: 0) }

  /// Returns the group with this key, and whether it is new.
  mutating func group(_ key: TraceGroupKey, named name: () -> String) -> (TraceGroup, isNew: Bool) {
    if let group = groups[key] { return (group, false) }
    guard groups.count < Self.maxGroups || key == Self.others else {
      return group(Self.others, named: { "other origins" })
    }
    let group = makeGroup(named: name(), isLast: false)
    groups[key] = group
    return (group, true)
  }

  /// Returns the companion of a group, and whether it is new.
  mutating func companion(of group: TraceGroup, named name: () -> String) -> (TraceGroup, isNew: Bool) {
    if let companion = group.companion { return (companion, false) }
    let companion = makeGroup(named: name(), isLast: true)
    group.companion = companion
    return (companion, true)
  }

  private mutating func makeGroup(named name: String, isLast: Bool) -> TraceGroup {
    lastPID += 1
    return TraceGroup(pid: lastPID, name: name, sortIndex: isLast ? Self.lastGroups + lastPID : lastPID)
  }

  /// Returns the row with this number, and whether it is new.
  func row(_ number: Int, named name: () -> String, in group: TraceGroup) -> (TraceRow, isNew: Bool) {
    if let row = group.rows[number] { return (row, false) }
    let row = TraceRow(pid: group.pid, tid: number, name: name())
    group.rows[number] = row
    return (row, true)
  }

  /// Returns a lane of the group that is free from `start` on, and whether it is new; nil if too many are in use.
  func lane(in group: TraceGroup, named name: String, from start: Int64, to end: Int64) -> (TraceRow, isNew: Bool)? {
    guard let lane = group.lanes.take(from: start, to: end) else { return nil }
    if lane < group.laneRows.count { return (group.laneRows[lane], false) }
    let row = TraceRow(pid: group.pid, tid: Self.firstLane + lane, name: "\(name) \(lane + 1)")
    group.laneRows.append(row)
    return (row, true)
  }
}

/// Assigns spans to lanes, so that the spans of one lane do not overlap. Spans come in the order of their ends.
///
/// Each span gets the free lane that was used last. With spans in this order, this needs no more lanes than spans
/// overlap.
struct TraceLanes {
  static let maxLanes = 128
  /// The lanes with the ends of their last spans, the latest first.
  private var lanes: [(end: Int64, lane: Int)] = []

  var count: Int { lanes.count }

  /// Returns a lane that is free from `start` on; nil if all `maxLanes` are in use.
  mutating func take(from start: Int64, to end: Int64) -> Int? {
    // The first that is free.
    var (low, high) = (0, lanes.count)
    while low < high {
      let middle = (low + high) / 2
      if lanes[middle].end <= start { high = middle } else { low = middle + 1 }
    }
    let lane: Int
    if low < lanes.count {
      lane = lanes.remove(at: low).lane
    } else if lanes.count < Self.maxLanes {
      lane = lanes.count
    } else {
      return nil
    }
    // At the front, unless the span does not come in its turn.
    lanes.insert((end, lane), at: lanes.firstIndex { $0.end <= end } ?? lanes.count)
    return lane
  }
}
