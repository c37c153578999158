/// A row of a trace: a thread of a process, in the terms of the format.
public struct TraceTrack: Sendable, Hashable {
  let pid: Int
  let tid: Int
}

/// Identifies a group. It is cheaper to make than the name of the group.
public struct TraceGroupKey: Sendable, Hashable {
  private let text: String
  private let number: Int

  public init(_ text: String, _ number: Int) { (self.text, self.number) = (text, number) }
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
  /// The offset of the number of a group that comes after the others.
  static let lastGroups = 1_000_000
  private static let others = TraceGroupKey("", -1)

  /// The largest number of groups at a time. Further ones share one.
  let maxGroups: Int
  private(set) var groups: [TraceGroupKey: Group] = [:]
  private var lastPID = Self.worker

  init(maxGroups: Int) { self.maxGroups = maxGroups }

  /// Returns the key under which a group is kept, and whether it is new.
  mutating func admit(
    _ key: TraceGroupKey, named name: () -> String, isLast: Bool, lap: Int
  ) -> (key: TraceGroupKey, isNew: Bool) {
    if let index = groups.index(forKey: key) {
      groups.values[index].lastLap = lap
      return (key, false)
    }
    guard groups.count < maxGroups || key == Self.others else {
      return admit(Self.others, named: { "other origins" }, isLast: true, lap: lap)
    }
    lastPID += 1
    let sortIndex = isLast ? Self.lastGroups + lastPID : lastPID
    groups[key] = Group(pid: lastPID, name: name(), sortIndex: sortIndex, lastLap: lap)
    return (key, true)
  }

  mutating func modify<Result>(_ key: TraceGroupKey, _ body: (inout Group) -> Result) -> Result { body(&groups[key]!) }

  /// Forgets the groups without events since the lap before `lap` and returns the others.
  mutating func startLap(_ lap: Int) -> [Group] {
    groups = groups.filter { $0.value.lastLap >= lap - 1 }
    return groups.values.sorted { $0.pid < $1.pid }
  }
}
