/// A row of a trace: a thread of a process, in the terms of the format.
public struct TraceTrack: Sendable, Hashable {
  let pid: Int
  let tid: Int
}

/// The processes and threads of a trace, which are groups of rows and rows in a viewer.
///
/// The events that name them are lost when the ring of pages begins again; they are then written again, except those of
/// groups without events in the last lap.
struct TraceTracks {
  struct Group {
    let pid: Int
    let name: String
    /// The place of the group.
    let sortIndex: Int
    /// The names of the rows, by number. Those of lanes follow from their number.
    var rows: [Int: String] = [:]
    var lanes = TraceLanes()
    var lanesNamed = 0
    var lastLap: Int
  }

  /// The group of this process itself.
  static let worker = 1
  /// The number of the first lane's row.
  static let firstLane = 1000
  /// The row for spans that overlap, and for instants.
  static let overlapping = 9999
  /// What is added to the number of a group that comes after the others.
  static let lastGroups = 1_000_000
  static let othersName = "other origins"

  /// The largest number of groups at a time. Further ones share one.
  let maxGroups: Int
  private(set) var groups: [String: Group] = [:]
  private var lastPID = Self.worker

  init(maxGroups: Int) { self.maxGroups = maxGroups }

  /// Returns the name under which a group is kept, and whether it is new.
  mutating func admit(_ name: String, isLast: Bool, lap: Int) -> (key: String, isNew: Bool) {
    if groups[name] != nil {
      groups[name]!.lastLap = lap
      return (name, false)
    }
    guard groups.count < maxGroups || name == Self.othersName else {
      return admit(Self.othersName, isLast: isLast, lap: lap)
    }
    lastPID += 1
    let sortIndex = isLast ? Self.lastGroups + lastPID : lastPID
    groups[name] = Group(pid: lastPID, name: name, sortIndex: sortIndex, lastLap: lap)
    return (name, true)
  }

  mutating func modify<Result>(_ key: String, _ body: (inout Group) -> Result) -> Result { body(&groups[key]!) }

  /// Forgets the groups without events since the lap before `lap` and returns the others.
  mutating func startLap(_ lap: Int) -> [Group] {
    groups = groups.filter { $0.value.lastLap >= lap - 1 }
    return groups.values.sorted { $0.pid < $1.pid }
  }
}
