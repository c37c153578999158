internal import Threads

/// Coordinates with the peers: the other workers of the directory.
extension DiskTier {
  /// The peer table; nil if there is none or the tier is not open. Callable from any thread.
  public nonisolated var peerTable: PeerTable? { deliveries.peerTable }

  /// Whether another worker may be alive. If so, writes are committed soon, and files that it may have delivered are
  /// kept.
  var hasPeers: Bool { peerTable?.hasPeers ?? peersLived }

  /// Opens the peer table. Without one, each worker transfers its own images, and everything else still works.
  func openPeerTable() {
    guard let opened = session.current, let lock = opened.lock else { return setPeerTable(nil) }
    setPeerTable(try? PeerTable(in: opened.folder, instance: lock.instance))
  }

  func setPeerTable(_ peerTable: PeerTable?) {
    deliveries.setPeerTable(peerTable)
    peerTable?.setUnlistedBytes(budget.reservedBytes)
  }

  /// Determines the living peers and reclaims the rows of dead ones in the peer table.
  ///
  /// - Returns: the peers that died since the last call.
  func detectDeadPeers(_ folder: CacheFolder, _ lock: PeerLock) throws(FileError) -> [PeerLock.DeadPeer] {
    if let peerTable, peerTable.isLost || FileIdentity(PeerTable.path, in: folder) != peerTable.identity {
      openPeerTable()
    }
    // Read the rows first: a peer creates its lock file before its row.
    let (joins, rows) = (peerTable?.joins ?? 0, peerTable?.others ?? [])
    let swept = sweep?.instances ?? []
    let (dead, living) = try PeerLock.survey(folder, except: swept + [lock.instance])
    for (row, instance) in rows where !living.contains(instance) { peerTable?.reclaim(row: row, of: instance) }
    peerTable?.recordPeers(!living.isEmpty, joins: joins)
    peersLived = !living.isEmpty
    return dead
  }

  /// Detects dead peers now, for a caller that waits for one.
  public func detectDeadPeersNow() {
    if mode == .readWrite, !session.isClosed { detectDeadPeers() }
  }

  /// The process ID of the living worker that holds the lease of a transfer, as it sees it; nil if there is none or the
  /// peer table cannot be read. For a read-only tier, which has no row in the table.
  ///
  /// - Parameter hash: as in `PeerTable.leaseRequest`.
  public func leaseHolder(of hash: UInt64) -> Int? {
    guard let folder = try? session.usable().folder, let table = try? PeerTable(observing: folder),
      let holder = table.holder(of: table.leaseRequest(hash)), PeerLock.living(in: folder).contains(holder.instance)
    else { return nil }
    return holder.process
  }

  /// Whether a peer has made a clear that matches the response since `clearCount` was `number`.
  func isCleared(_ response: StoredResponse, since number: UInt64) -> Bool {
    guard let peerTable, peerTable.clearCount != number else { return false }
    let now = now
    return peerTable.clearings(since: number).contains {
      !$0.filter.dependsOnTime && $0.filter.matches(response, now: now)
    }
  }

  /// Keeps the lease on a response that was just stored or updated, until the commit.
  public func retainUntilCommit(_ lease: Lease) { session.retain(lease) }
}
