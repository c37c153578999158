/// The values of IDs from a `GenerationalIDPool`, found by slot: no hashing, and memory for the maximum number there
/// were at once.
///
/// Manages its own memory: reading a part of an element in an array of optionals would copy the element and retain all
/// its references.
struct SlotMap<ID: SlotNumbered, Value>: ~Copyable {
  /// The serial of the ID in each slot; 0, which no ID has, if the slot is empty.
  private var serials: [UInt64] = []
  // Initialized if the serial is not 0.
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

  /// The value of an ID; nil if it has none, or has none any more, even if its slot has been reused.
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

  /// The value in a slot, which must be occupied.
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

  /// The ID in an occupied slot.
  func id(at slot: Int32) -> ID { ID(slot: slot, serial: serials[Int(slot)]) }

  /// The IDs with a value, in the order of their slots.
  var ids: [ID] {
    serials.indices.compactMap { slot in
      serials[slot] == 0 ? nil : ID(slot: Int32(slot), serial: serials[slot])
    }
  }
}

/// A generational ID, by which a `SlotMap` finds a value without hashing: a slot, which is reused, and a serial number,
/// which is not, so that an old ID finds nothing.
protocol SlotNumbered: Hashable, Sendable {
  var slot: Int32 { get }
  var serial: UInt64 { get }

  init(slot: Int32, serial: UInt64)
}

/// Allocates IDs. The slot freed last is reused first, so that tables stay as small as possible.
struct GenerationalIDPool<ID: SlotNumbered> {
  private var free: [Int32] = []
  private var slots: Int32 = 0
  private(set) var lastSerial: UInt64 = 0

  /// The number of IDs in use.
  var count: Int { Int(slots) - free.count }

  mutating func take() -> ID {
    lastSerial += 1
    if let slot = free.popLast() { return ID(slot: slot, serial: lastSerial) }
    defer { slots += 1 }
    return ID(slot: slots, serial: lastSerial)
  }

  /// Frees an ID. Must be called once for each ID, when no table has a value for it.
  mutating func giveBack(_ id: ID) { free.append(id.slot) }
}
