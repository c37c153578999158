/// Searches for files without a row: temporary files and image files of dead workers, and of a worker that has lost
/// rows itself. Each step covers one shard.
///
/// Ignores files whose names the store does not generate.
struct Sweep {
  /// Lock files of the dead workers, held so that no peer sweeps the same files.
  private let deadPeers: [PeerLock.DeadPeer]
  /// This worker's instance number if its own files are included.
  let ownInstance: Int32?
  private var nextShard = 0

  init(deadPeers: [PeerLock.DeadPeer], ownInstance: Int32?) {
    self.deadPeers = deadPeers
    self.ownInstance = ownInstance
  }

  /// The instance numbers of the dead workers.
  var instances: [Int32] { deadPeers.map(\.instance) }

  var isOver: Bool { nextShard == CacheFolder.shards.count }

  /// A file whose row no living worker may still be about to write.
  struct OrphanFile {
    let id: Int64
    let isTemporary: Bool
    let path: String
  }

  /// Returns the suspects of the next shard.
  mutating func step(in folder: CacheFolder, lock: PeerLock) -> [OrphanFile] {
    let shard = CacheFolder.shards[nextShard]
    nextShard += 1
    // The order matters: list the names, then find the living workers, then read the rows. A worker that ends in
    // between has written its rows.
    let names = (try? folder.files.list(shard, in: folder.descriptor)) ?? []
    var suspects: [OrphanFile] = []
    for name in names {
      guard let file = FileName.parse(name), FileName.shard(of: file.id) == shard else { continue }
      let instance = Int32(truncatingIfNeeded: file.id >> 32)
      if instance != ownInstance && lock.exists(instance) && !instances.contains(instance) { continue }
      suspects.append(OrphanFile(id: file.id, isTemporary: file.isTemporary, path: shard + "/" + name))
    }
    return suspects
  }

  /// Removes the lock files of the dead workers, whose files are removed.
  func finish() { for deadPeer in deadPeers { deadPeer.remove() } }
}
