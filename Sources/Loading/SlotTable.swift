/// What belongs to each of the names that a `SlotPool` gave out, found by its slot: no hashing, and room for the most
/// there were at once.
struct SlotTable<ID: SlotNumbered, Value> {
  private struct Entry {
    var serial: UInt64
    var value: Value?
  }

  private var entries: [Entry] = []
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  func contains(_ id: ID) -> Bool {
    entries.indices.contains(Int(id.slot)) && entries[Int(id.slot)].serial == id.serial
      && entries[Int(id.slot)].value != nil
  }

  /// Nil for a name that nothing belongs to, or no longer, even if its slot is used again.
  subscript(id: ID) -> Value? {
    get {
      guard entries.indices.contains(Int(id.slot)), entries[Int(id.slot)].serial == id.serial else { return nil }
      return entries[Int(id.slot)].value
    }
    set {
      guard let newValue else {
        remove(id)
        return
      }
      if contains(id) {
        entries[Int(id.slot)].value = newValue
      } else {
        insert(newValue, at: id)
      }
    }
  }

  mutating func insert(_ value: Value, at id: ID) {
    while entries.count <= Int(id.slot) { entries.append(Entry(serial: 0, value: nil)) }
    precondition(entries[Int(id.slot)].value == nil, "two names share a slot")
    entries[Int(id.slot)] = Entry(serial: id.serial, value: value)
    count += 1
  }

  @discardableResult
  mutating func remove(_ id: ID) -> Value? {
    guard contains(id) else { return nil }
    count -= 1
    return entries[Int(id.slot)].value.take()
  }

  // MARK: - By slot

  /// What is in a slot, for slots that are occupied only.
  subscript(slot: Int32) -> Value {
    _read { yield entries[Int(slot)].value! }
    _modify { yield &entries[Int(slot)].value! }
  }

  /// The name that a slot goes by now.
  func id(at slot: Int32) -> ID { ID(slot: slot, serial: entries[Int(slot)].serial) }

  /// Those that something belongs to, by slot.
  var ids: [ID] {
    entries.indices.compactMap { slot in
      entries[slot].value == nil ? nil : ID(slot: Int32(slot), serial: entries[slot].serial)
    }
  }
}
