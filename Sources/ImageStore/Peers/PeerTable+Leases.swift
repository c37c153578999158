internal import Synchronization

/// Single flight across processes: at most one worker makes a transfer.
///
/// A bucket has a word that counts the leases that have ended in it, and seven slots. The word of a slot is 0, or
/// identifies the transfer and the worker that makes it. If all slots are used, a transfer has no lease.
extension PeerTable {
  public enum Answer: Sendable {
    case acquired(Lease)
    /// Nobody holds the lease, and the index may have changed since the request was made.
    case cacheChanged
    /// A peer holds the lease.
    case held
    /// No lease is available: this worker holds it already, or the bucket is full.
    case none
  }

  /// Creates a lease request. Must be called before the look-up in the index.
  ///
  /// - Parameter hash: equal in all workers for the same response.
  public func leaseRequest(_ hash: UInt64) -> LeaseRequest {
    var leaseRequest = LeaseRequest(hash: hash)
    refresh(&leaseRequest)
    return leaseRequest
  }

  /// Updates the request as if it were made now.
  public func refresh(_ leaseRequest: inout LeaseRequest) {
    leaseRequest.leaseEpoch = leaseEpoch(in: leaseRequest.bucket)
    leaseRequest.holder = nil
  }

  /// Acquires the lease if nobody holds it. Otherwise updates the request and records the holder.
  public func acquire(_ leaseRequest: inout LeaseRequest) -> Answer {
    let leaseEpoch = leaseEpoch(in: leaseRequest.bucket)
    let answer = acquire(leaseRequest, &leaseRequest.holder)
    if case .held = answer { leaseRequest.leaseEpoch = leaseEpoch }
    return answer
  }

  private func acquire(_ leaseRequest: LeaseRequest, _ holder: inout UInt64?) -> Answer {
    guard let row else { return .none }
    let (bucket, word) = (leaseRequest.bucket, leaseRequest.tag | row)
    let acquired: Int
    while true {
      var free: Int?
      for index in Self.slots(of: bucket) {
        let other = words[index].load(ordering: .sequentiallyConsistent)
        if other == 0 { free = free ?? index }
        guard other != 0, other & ~0xff == leaseRequest.tag else { continue }
        holder = Self.row(ofHolder: other)
        return other == word ? .none : .held
      }
      guard let free else { return .none }
      if words[free].compareExchange(expected: 0, desired: word, ordering: .sequentiallyConsistent).exchanged {
        acquired = free
        break
      }
    }
    // If two workers acquired the lease in two slots at the same moment, at least one of them sees the other here.
    for index in Self.slots(of: bucket) where index != acquired {
      let other = words[index].load(ordering: .sequentiallyConsistent)
      guard other != 0, other & ~0xff == leaseRequest.tag else { continue }
      holder = Self.row(ofHolder: other)
      freeSlot(acquired, word)
      return .held
    }
    // A worker advances the epoch before it frees the slot.
    if hasPeers, leaseEpoch(in: bucket) != leaseRequest.leaseEpoch {
      freeSlot(acquired, word)
      return .cacheChanged
    }
    return .acquired(Lease(peerTable: self, index: acquired, word: word))
  }

  private func freeSlot(_ index: Int, _ word: UInt64) {
    // Fails if a peer has revoked the lease meanwhile.
    _ = words[index].compareExchange(expected: word, desired: 0, ordering: .sequentiallyConsistent)
  }

  func end(_ index: Int, _ word: UInt64, _ ending: UInt64) {
    // Advance the epoch first, so that a worker that finds the slot free also finds the new epoch.
    let bucket = index - index % Layout.wordsOfBucket
    words[bucket].wrappingAdd(ending, ordering: .sequentiallyConsistent)
    freeSlot(index, word)
  }

  /// The progress of a transfer by a peer.
  public enum Progress: Sendable, Equatable {
    /// - Parameter worker: the row of the peer.
    case running(worker: UInt64)
    /// - Parameter failed: whether the transfer failed; false if it succeeded or its worker died.
    case over(failed: Bool)
  }

  public func progress(of leaseRequest: LeaseRequest) -> Progress {
    let worker = worker(of: leaseRequest)
    let leaseEpoch = leaseEpoch(in: leaseRequest.bucket)
    // The lease may have ended and a new transfer begun, or a peer may have taken over from a dead worker.
    if let worker, worker != row, worker == leaseRequest.holder || leaseEpoch == leaseRequest.leaseEpoch {
      return .running(worker: worker)
    }
    return .over(failed: leaseEpoch.failed != leaseRequest.leaseEpoch.failed)
  }

  /// Revokes the lease of a worker that has stopped. Any worker, including the stopped one, may then acquire it.
  public func revoke(_ leaseRequest: LeaseRequest, from worker: UInt64) {
    guard let index = index(of: leaseRequest) else { return }
    _ = words[index].compareExchange(expected: leaseRequest.tag | worker, desired: 0, ordering: .sequentiallyConsistent)
  }

  /// The process ID and the instance number of the holder, which may be this process.
  public func holder(of leaseRequest: LeaseRequest) -> (process: Int, instance: Int32)? {
    worker(of: leaseRequest).map { (Int(process(of: $0)), instance(of: $0)) }
  }

  private func worker(of leaseRequest: LeaseRequest) -> UInt64? {
    guard let index = index(of: leaseRequest) else { return nil }
    let worker = Self.row(ofHolder: words[index].load(ordering: .sequentiallyConsistent))
    return worker == 0 ? nil : worker
  }

  static func row(ofHolder word: UInt64) -> UInt64 { word & 0xff }

  private static func slots(of bucket: Int) -> Range<Int> { bucket + 1..<bucket + Layout.wordsOfBucket }

  private func leaseEpoch(in bucket: Int) -> LeaseRequest.LeaseEpoch {
    LeaseRequest.LeaseEpoch(word: words[bucket].load(ordering: .sequentiallyConsistent))
  }

  private func index(of leaseRequest: LeaseRequest) -> Int? {
    Self.slots(of: leaseRequest.bucket).first { index in
      let word = words[index].load(ordering: .sequentiallyConsistent)
      return word != 0 && word & ~0xff == leaseRequest.tag
    }
  }
}
