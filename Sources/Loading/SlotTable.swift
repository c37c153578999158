/// What belongs to each of the names that a `SlotPool` gave out, found by its slot: no hashing, and room for the most
/// there were at once.
struct SlotTable<ID: SlotNumbered, Value> {
  // Two arrays: what is asked first can be looked at without copying what belongs to the name.
  private var serials: [UInt64] = []
  private var values: [Value?] = []
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  func contains(_ id: ID) -> Bool { isCurrent(id) && values[Int(id.slot)] != nil }

  private func isCurrent(_ id: ID) -> Bool {
    serials.indices.contains(Int(id.slot)) && serials[Int(id.slot)] == id.serial
  }

  /// Nil for a name that nothing belongs to, or no longer, even if its slot is used again.
  subscript(id: ID) -> Value? {
    get { isCurrent(id) ? values[Int(id.slot)] : nil }
    set {
      guard let newValue else {
        remove(id)
        return
      }
      if contains(id) {
        values[Int(id.slot)] = newValue
      } else {
        insert(newValue, at: id)
      }
    }
  }

  mutating func insert(_ value: Value, at id: ID) {
    while values.count <= Int(id.slot) {
      serials.append(0)
      values.append(nil)
    }
    precondition(values[Int(id.slot)] == nil, "two names share a slot")
    serials[Int(id.slot)] = id.serial
    values[Int(id.slot)] = value
    count += 1
  }

  @discardableResult
  mutating func remove(_ id: ID) -> Value? {
    guard contains(id) else { return nil }
    count -= 1
    return values[Int(id.slot)].take()
  }

  // MARK: - By slot

  /// What is in a slot, for slots that are occupied only.
  subscript(slot: Int32) -> Value {
    _read { yield values[Int(slot)]! }
    _modify { yield &values[Int(slot)]! }
  }

  /// The name that a slot goes by now.
  func id(at slot: Int32) -> ID { ID(slot: slot, serial: serials[Int(slot)]) }

  /// Those that something belongs to, by slot.
  var ids: [ID] {
    values.indices.compactMap { slot in
      values[slot] == nil ? nil : ID(slot: Int32(slot), serial: serials[slot])
    }
  }
}
