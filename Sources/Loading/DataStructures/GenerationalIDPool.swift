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
