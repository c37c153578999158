/// Removes what dead workers left: temporary files, and image files without a row. One shard a step.
///
/// It touches only files whose names the store makes and whose worker is dead. Those that a host may still count on are
/// entered as doomed: they count against the limit, and go when their time is over.
struct Sweep {
  /// Lock files of the dead, held so that nobody else sweeps after them.
  private let remains: [WorkerLock.Remains]
  private var nextShard = 0

  init(remains: [WorkerLock.Remains]) { self.remains = remains }

  /// The dead workers that it sweeps after.
  var instances: [Int32] { remains.map(\.instance) }

  var isOver: Bool { nextShard == CacheFolder.shards.count }

  /// A file that may have been left by a dead worker.
  struct Suspect {
    let id: Int64
    let isTemporary: Bool
    let path: String
  }

  /// The suspects of the next shard.
  mutating func step(in folder: CacheFolder, lock: WorkerLock) -> [Suspect] {
    let shard = CacheFolder.shards[nextShard]
    nextShard += 1
    // The order matters: names first, then who lives, then the rows. A worker that ends in between has written its rows.
    let names = (try? folder.files.list(shard, in: folder.descriptor)) ?? []
    var suspects: [Suspect] = []
    for name in names {
      guard let file = FileName.parse(name), FileName.shard(of: file.id) == shard else { continue }
      let instance = Int32(truncatingIfNeeded: file.id >> 32)
      if lock.exists(instance) && !instances.contains(instance) { continue }
      suspects.append(Suspect(id: file.id, isTemporary: file.isTemporary, path: shard + "/" + name))
    }
    return suspects
  }

  /// Removes those suspects that have no row, or dooms them.
  func remove(_ suspects: [Suspect], from folder: CacheFolder, index: DiskIndex, now: Int) throws(SQLiteError) {
    for suspect in suspects {
      let isListed = suspect.isTemporary ? try index.contains(partial: suspect.id) : try index.contains(id: suspect.id)
      if isListed { continue }
      if !suspect.isTemporary, let status = try? folder.files.status(suspect.path, in: folder.descriptor),
        case let due = endOfLife(deliveredAt: status.modificationSecond), due > now, status.modificationSecond <= now
      {
        try index.doom(suspect.id, file: suspect.path, allocated: folder.allocated(status.byteCount), due: due)
      } else {
        folder.remove(suspect.path)
      }
    }
  }

  /// Removes the signs of those whose leavings are gone.
  func finish() {
    for remains in remains { remains.remove() }
  }
}
