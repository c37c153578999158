internal import Threads

/// The other workers of the directory.
extension DiskTier {
  /// What all workers of the directory write on; nil where there is none, or the tier is not open. From any thread.
  public nonisolated var companyBoard: PeerTable? { pins.peerTable }

  /// Whether another worker may be there: then what is written is committed soon, and what it may have delivered stays.
  var hasPeers: Bool { peerTable?.hasPeers ?? othersLived }

  /// Without one, images are transferred by each worker for itself; all else holds.
  func openBoard() {
    guard let session, let lock = session.lock else { return setBoard(nil) }
    setBoard(try? PeerTable(in: session.folder, instance: lock.instance))
  }

  func setBoard(_ peerTable: PeerTable?) {
    self.peerTable = peerTable
    pins.setBoard(peerTable)
    peerTable?.setUnlistedBytes(spooledBytes)
  }

  /// Looks who lives, and wipes off the board what the dead have left.
  ///
  /// - Returns: the remains of those that died since the last time.
  func detectDeadPeers(_ folder: CacheFolder, _ lock: PeerLock) throws(FileError) -> [PeerLock.DeadPeer] {
    if let peerTable, peerTable.isLost || FileIdentity(PeerTable.path, in: folder) != peerTable.identity { openBoard() }
    // First, as their lock files were there before their rows were.
    let (joins, rows) = (peerTable?.joins ?? 0, peerTable?.others ?? [])
    let swept = sweep?.instances ?? []
    let (dead, living) = try lock.detectDeadPeers(except: swept)
    for (row, instance) in rows where !living.contains(instance) { peerTable?.reclaim(row: row, of: instance) }
    peerTable?.noteCompany(!living.isEmpty, joins: joins)
    othersLived = !living.isEmpty
    return dead
  }

  /// Looks now whether other workers have died, for one that waits for them.
  public func detectDeadPeersNow() {
    if mode == .readWrite, !isClosed { detectDeadPeers() }
  }

  /// Whether another worker has cleared what falls under the same filter as the response, since the count was `number`.
  func isCleared(_ response: StoredResponse, since number: UInt64) -> Bool {
    guard let peerTable, peerTable.clearCount != number else { return false }
    let now = now
    return peerTable.clearings(since: number).contains {
      !$0.filter.dependsOnTime && $0.filter.matches(response, now: now)
    }
  }

  /// Takes over the lease on what was stored or updated just now. It ends with the commit.
  public func keep(_ lease: Lease) { leases.append(lease) }
}
