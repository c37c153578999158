/// Values in numbered slots that are used again: a slot number stays valid until `remove`.
struct Slots<Value> {
  private var values: [Value?] = []
  private var free: [Int] = []

  var isEmpty: Bool { values.count == free.count }

  /// The slot that the next `insert` will use.
  var nextSlot: Int { free.last ?? values.count }

  mutating func insert(_ value: Value) -> Int {
    guard let slot = free.popLast() else {
      values.append(value)
      return values.count - 1
    }
    values[slot] = value
    return slot
  }

  mutating func remove(_ slot: Int) {
    values[slot] = nil
    free.append(slot)
  }

  /// Traps for a slot that is not occupied.
  subscript(slot: Int) -> Value {
    _read { yield values[slot]! }
    _modify { yield &values[slot]! }
  }

  var occupied: [Int] { values.indices.filter { values[$0] != nil } }
}

/// A count for each priority.
public struct PriorityCounts: Sendable, Equatable {
  private var counts = (0, 0, 0, 0, 0)

  public subscript(priority: Priority) -> Int {
    get {
      switch priority {
      case .lowest: counts.0
      case .low: counts.1
      case .normal: counts.2
      case .high: counts.3
      case .highest: counts.4
      }
    }
    set {
      switch priority {
      case .lowest: counts.0 = newValue
      case .low: counts.1 = newValue
      case .normal: counts.2 = newValue
      case .high: counts.3 = newValue
      case .highest: counts.4 = newValue
      }
    }
  }

  public var total: Int { counts.0 + counts.1 + counts.2 + counts.3 + counts.4 }

  /// The highest priority with a count over zero.
  public var highest: Priority? { Priority.allCases.last { self[$0] > 0 } }

  public static func == (left: Self, right: Self) -> Bool { left.counts == right.counts }
}
