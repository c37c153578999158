/// A name by which tables find what belongs to it without hashing: a slot, which is used again once it is free, and a
/// serial number, which never is, so that who comes late with an old name finds nothing.
protocol SlotNumbered: Hashable, Sendable {
  var slot: Int32 { get }
  var serial: UInt64 { get }

  init(slot: Int32, serial: UInt64)
}

/// Gives out names. The slot given back last is used first, so that tables grow only as far as there is need.
struct GenerationalIDPool<ID: SlotNumbered> {
  private var free: [Int32] = []
  private var slots: Int32 = 0
  private(set) var lastSerial: UInt64 = 0

  /// How many names are out.
  var count: Int { Int(slots) - free.count }

  mutating func take() -> ID {
    lastSerial += 1
    if let slot = free.popLast() { return ID(slot: slot, serial: lastSerial) }
    defer { slots += 1 }
    return ID(slot: slots, serial: lastSerial)
  }

  /// Once for each name, when no table has anything under it any more.
  mutating func giveBack(_ id: ID) { free.append(id.slot) }
}
