/// Values in numbered slots that are used again: a slot number stays valid until `remove`.
///
/// Empty slots hold a value, too: an optional one would be copied out and in at every access.
struct Slots<Value> {
  private let vacant: Value
  private var values: [Value] = []
  private var isOccupied: [Bool] = []
  private var free: [Int] = []

  /// - Parameter vacant: what stands in empty slots.
  init(vacant: Value) { self.vacant = vacant }

  var isEmpty: Bool { values.count == free.count }

  /// The slot that the next `insert` will use.
  var nextSlot: Int { free.last ?? values.count }

  mutating func insert(_ value: Value) -> Int {
    guard let slot = free.popLast() else {
      values.append(value)
      isOccupied.append(true)
      return values.count - 1
    }
    values[slot] = value
    isOccupied[slot] = true
    return slot
  }

  mutating func remove(_ slot: Int) {
    precondition(isOccupied[slot])
    values[slot] = vacant
    isOccupied[slot] = false
    free.append(slot)
  }

  /// For slots that are occupied only.
  subscript(slot: Int) -> Value {
    _read { yield values[slot] }
    _modify { yield &values[slot] }
  }

  var occupied: [Int] { values.indices.filter { isOccupied[$0] } }
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
