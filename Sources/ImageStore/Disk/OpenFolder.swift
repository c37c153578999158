/// The open directory of a disk tier, with this worker's lock file.
final class OpenFolder {
  let folder: CacheFolder
  let lock: PeerLock?
  /// The run of the system whose files need no verification, or this worker if the system does not name its runs.
  let boot: String
  let bootNumber: Int64
  private var lastID: Int64

  init(folder: CacheFolder, lock: PeerLock?, boot: String?) {
    self.folder = folder
    self.lock = lock
    self.boot = boot ?? "worker \(lock?.instance ?? 0)"
    bootNumber = fnv1a(self.boot)
    // The counter starts at a random shard, so that the first shards do not fill up.
    let instance = Int64(lock?.instance ?? 0)
    lastID = instance << 32 | instance & 0xff
  }

  func nextID() -> Int64 {
    lastID += 1
    return lastID
  }

  /// Continues the ids of an earlier worker that drew the same instance number.
  func continueIDs(after id: Int64) { lastID = max(lastID, id) }
}
