/// The priority of a load. A job has the highest priority of its subscribers.
public enum Priority: Int, Sendable, CaseIterable, Comparable {
  case lowest, low, normal, high, highest

  public var name: String {
    switch self {
    case .lowest: "lowest"
    case .low: "low"
    case .normal: "normal"
    case .high: "high"
    case .highest: "highest"
    }
  }

  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// A count for each priority, in four bytes each, since every job has one.
public struct PriorityCounts: Sendable, Equatable {
  private var counts: (UInt32, UInt32, UInt32, UInt32, UInt32) = (0, 0, 0, 0, 0)

  public init() {}

  public subscript(priority: Priority) -> Int {
    get {
      switch priority {
      case .lowest: Int(counts.0)
      case .low: Int(counts.1)
      case .normal: Int(counts.2)
      case .high: Int(counts.3)
      case .highest: Int(counts.4)
      }
    }
    set {
      let count = UInt32(newValue)
      switch priority {
      case .lowest: counts.0 = count
      case .low: counts.1 = count
      case .normal: counts.2 = count
      case .high: counts.3 = count
      case .highest: counts.4 = count
      }
    }
  }

  public var total: Int { Priority.allCases.reduce(0) { $0 + self[$1] } }

  public static func + (left: Self, right: Self) -> Self {
    Priority.allCases.reduce(into: left) { $0[$1] += right[$1] }
  }

  /// The highest priority with a count above zero.
  public var highest: Priority? { Priority.allCases.last { self[$0] > 0 } }

  public static func == (left: Self, right: Self) -> Bool { left.counts == right.counts }
}
