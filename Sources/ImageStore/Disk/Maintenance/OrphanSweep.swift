/// Looks for what has no row: temporary files and image files of dead workers, and of one that has lost rows itself.
/// One shard a step.
///
/// It names only files whose names the store makes.
struct Sweep {
  /// Lock files of the dead, held so that nobody else sweeps after them.
  private let deadPeers: [PeerLock.DeadPeer]
  /// The instance number of the worker that sweeps, if its own files are looked at, too.
  let own: Int32?
  private var nextShard = 0

  init(deadPeers: [PeerLock.DeadPeer], own: Int32?) {
    self.deadPeers = deadPeers
    self.own = own
  }

  /// The dead workers that it sweeps after.
  var instances: [Int32] { deadPeers.map(\.instance) }

  var isOver: Bool { nextShard == CacheFolder.shards.count }

  /// A file that nobody may be about to write a row of.
  struct OrphanFile {
    let id: Int64
    let isTemporary: Bool
    let path: String
  }

  /// The suspects of the next shard.
  mutating func step(in folder: CacheFolder, lock: PeerLock) -> [OrphanFile] {
    let shard = CacheFolder.shards[nextShard]
    nextShard += 1
    // The order matters: names first, then who lives, then the rows. A worker that ends in between has written its
    // rows.
    let names = (try? folder.files.list(shard, in: folder.descriptor)) ?? []
    var suspects: [OrphanFile] = []
    for name in names {
      guard let file = FileName.parse(name), FileName.shard(of: file.id) == shard else { continue }
      let instance = Int32(truncatingIfNeeded: file.id >> 32)
      if instance != own && lock.exists(instance) && !instances.contains(instance) { continue }
      suspects.append(OrphanFile(id: file.id, isTemporary: file.isTemporary, path: shard + "/" + name))
    }
    return suspects
  }

  /// Removes the signs of those whose leavings are gone.
  func finish() {
    for deadPeers in deadPeers { deadPeers.remove() }
  }
}
