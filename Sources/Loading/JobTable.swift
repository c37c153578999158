/// What belongs to each job, found by the job's slot: no hashing, and room for the most jobs there were at once.
struct JobTable<Value> {
  private var entries: [(serial: UInt64, value: Value?)] = []
  private var count = 0

  var isEmpty: Bool { count == 0 }

  /// Nil for a job that has ended, even if its slot is used again.
  subscript(id: JobID) -> Value? {
    get {
      guard id.slot < entries.count, entries[id.slot].serial == id.serial else { return nil }
      return entries[id.slot].value
    }
    set {
      guard let newValue else {
        remove(id)
        return
      }
      while entries.count <= id.slot { entries.append((0, nil)) }
      if entries[id.slot].value == nil { count += 1 }
      entries[id.slot] = (id.serial, newValue)
    }
  }

  @discardableResult
  mutating func remove(_ id: JobID) -> Value? {
    guard let value = self[id] else { return nil }
    entries[id.slot] = (0, nil)
    count -= 1
    return value
  }
}
