internal import HTTPTypes
internal import Platform

/// Identifies an origin's record for as long as it is kept.
struct OriginID: SlotNumbered {
  let slot: Int32
  let serial: UInt64
}

/// The origins that have jobs, or state worth keeping, found by slot, by ID and by origin.
struct OriginTable: ~Copyable {
  private var records = SlotMap<OriginID, Scheduler.OriginRecord>()
  private var pool = GenerationalIDPool<OriginID>()
  private(set) var byOrigin: [Origin: OriginID] = [:]
  /// The number of origins kept without jobs.
  var rememberedCount = 0
  /// The origins that failed while no origin answered, and when one last answered. See Scheduler+Origins.
  var suspectedLocalOutage: Set<OriginID> = []
  var lastAnswer: Instant?
  /// The origins whose names must be looked up, and the number of lookups requested or running.
  var namesToAsk: [OriginID] = []
  var lookUpCount = 0
  /// The origins with loads that may be unable to wait. See Scheduler+Deadlines.
  var unchecked: Set<OriginID> = []
  /// The changes of health that have not been reported yet.
  var healthChanges: [OriginState] = []

  var count: Int { records.count }
  /// The IDs in the order of their slots.
  var ids: [OriginID] { records.ids }

  subscript(id: OriginID) -> Scheduler.OriginRecord? { records[id] }

  /// The record in a slot, which must be occupied.
  subscript(slot: Int32) -> Scheduler.OriginRecord {
    _read { yield records[slot] }
    _modify { yield &records[slot] }
  }

  func contains(_ id: OriginID) -> Bool { records.contains(id) }

  func id(at slot: Int32) -> OriginID { records.id(at: slot) }

  mutating func insert(_ record: Scheduler.OriginRecord) -> OriginID {
    let id = pool.take()
    records.insert(record, at: id)
    byOrigin[record.origin] = id
    return id
  }

  mutating func remove(_ slot: Int32) {
    let id = records.id(at: slot)
    suspectedLocalOutage.remove(id)
    unchecked.remove(id)
    if records[slot].forgetAt != nil { rememberedCount -= 1 }
    if records[slot].name == .asked { lookUpCount -= 1 }
    byOrigin[records[slot].origin] = nil
    records.remove(id)
    pool.giveBack(id)
  }
}
