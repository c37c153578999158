/// What belongs to each of the names that a `GenerationalIDPool` gave out, found by its slot: no hashing, and room for the most
/// there were at once.
///
/// Its own memory rather than an array of optionals: those are copied, with all that they refer to, for each look at a
/// part of what is in them.
struct SlotMap<ID: SlotNumbered, Value>: ~Copyable {
  /// Of the name that each slot belongs to; 0, which no name has, where nothing does.
  private var serials: [UInt64] = []
  // Initialized where the serial is not 0.
  private var values: UnsafeMutablePointer<Value>
  private var capacity: Int
  private(set) var count = 0

  init() {
    capacity = 16
    values = .allocate(capacity: capacity)
  }

  deinit {
    for slot in serials.indices where serials[slot] != 0 { (values + slot).deinitialize(count: 1) }
    values.deallocate()
  }

  var isEmpty: Bool { count == 0 }

  func contains(_ id: ID) -> Bool {
    serials.indices.contains(Int(id.slot)) && serials[Int(id.slot)] == id.serial && id.serial != 0
  }

  /// Nil for a name that nothing belongs to, or no longer, even if its slot is used again.
  subscript(id: ID) -> Value? {
    get { contains(id) ? values[Int(id.slot)] : nil }
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
    reach(Int(id.slot))
    precondition(serials[Int(id.slot)] == 0, "two names share a slot")
    serials[Int(id.slot)] = id.serial
    (values + Int(id.slot)).initialize(to: value)
    count += 1
  }

  @discardableResult
  mutating func remove(_ id: ID) -> Value? {
    guard contains(id) else { return nil }
    serials[Int(id.slot)] = 0
    count -= 1
    return (values + Int(id.slot)).move()
  }

  private mutating func reach(_ slot: Int) {
    while serials.count <= slot { serials.append(0) }
    guard slot >= capacity else { return }
    capacity = max(slot + 1, 2 * capacity)
    let larger = UnsafeMutablePointer<Value>.allocate(capacity: capacity)
    for slot in serials.indices where serials[slot] != 0 {
      (larger + slot).moveInitialize(from: values + slot, count: 1)
    }
    values.deallocate()
    values = larger
  }

  // MARK: - By slot

  /// What is in a slot, for slots that are occupied only.
  subscript(slot: Int32) -> Value {
    _read {
      precondition(serials[Int(slot)] != 0, "nothing is in the slot")
      yield values[Int(slot)]
    }
    _modify {
      precondition(serials[Int(slot)] != 0, "nothing is in the slot")
      yield &values[Int(slot)]
    }
  }

  /// The name that a slot goes by now.
  func id(at slot: Int32) -> ID { ID(slot: slot, serial: serials[Int(slot)]) }

  /// Those that something belongs to, by slot.
  var ids: [ID] {
    serials.indices.compactMap { slot in
      serials[slot] == 0 ? nil : ID(slot: Int32(slot), serial: serials[slot])
    }
  }
}
