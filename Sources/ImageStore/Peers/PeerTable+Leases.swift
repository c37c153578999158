internal import Synchronization

/// The identity of a transfer, equal in all workers of a directory, with the state of its lease bucket when it was last
/// read.
public struct LeaseRequest: Sendable {
  /// Two different transfers with the same hash only wait for each other needlessly.
  let hash: UInt64
  /// The counters of the leases that have ended in the bucket.
  var leaseEpoch = LeaseEpoch(word: 0)
  /// The row of the worker that held the lease at the last request.
  var holder: UInt64?

  struct LeaseEpoch: Equatable {
    let word: UInt64

    /// The number of leases that ended as failed.
    var failed: UInt64 { word >> 32 }

    static let succeeded: UInt64 = 1
    static let failed: UInt64 = 1 << 32
  }

  var bucket: Int { PeerTable.Layout.bucket(hash % UInt64(PeerTable.Layout.buckets)) }
  /// The word of the slot without its lowest byte, which is the row of the holder.
  var tag: UInt64 { hash & ~0xff }
}

/// The right of this worker to make a transfer for all workers of a directory. It lasts as long as the object exists.
///
/// The peers wait for its end and then read the index. The object must outlive the commit of the response. If there is
/// no commit, the lease ends with its last reference.
public final class Lease: Sendable {
  private let peerTable: PeerTable
  private let index: Int
  private let word: UInt64
  /// The value that its end adds to the epoch of the bucket.
  private let ending = Atomic<UInt64>(LeaseRequest.LeaseEpoch.failed)

  fileprivate init(peerTable: PeerTable, index: Int, word: UInt64) {
    self.peerTable = peerTable
    self.index = index
    self.word = word
    peerTable.leaseCount.add(1, ordering: .relaxed)
  }

  deinit {
    peerTable.end(index, word, ending.load(ordering: .relaxed))
    peerTable.leaseCount.subtract(1, ordering: .relaxed)
  }

  /// Marks the lease as succeeded, after the response is committed. The lease still ends with its last reference.
  func succeed() { ending.store(LeaseRequest.LeaseEpoch.succeeded, ordering: .relaxed) }

  /// Makes the lease end, with its last reference, as if it had never existed. Called if the response is of no use to
  /// the peers.
  public func abandon() { ending.store(0, ordering: .relaxed) }
}

/// Single flight across processes: at most one worker makes a transfer.
///
/// A bucket has a word that counts the leases that have ended in it, and seven slots. The word of a slot is 0, or
/// identifies the transfer and the worker that makes it. If all slots are used, a transfer has no lease.
extension PeerTable {
  public enum Answer: Sendable {
    case taken(Lease)
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
  public func take(_ leaseRequest: inout LeaseRequest) -> Answer {
    let leaseEpoch = leaseEpoch(in: leaseRequest.bucket)
    let answer = take(leaseRequest, &leaseRequest.holder)
    if case .held = answer { leaseRequest.leaseEpoch = leaseEpoch }
    return answer
  }

  private func take(_ leaseRequest: LeaseRequest, _ holder: inout UInt64?) -> Answer {
    guard let row else { return .none }
    let (bucket, word) = (leaseRequest.bucket, leaseRequest.tag | row)
    var acquired: Int?
    while acquired == nil {
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
      }
    }
    guard let acquired else { return .none }
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
    return .taken(Lease(peerTable: self, index: acquired, word: word))
  }

  private func freeSlot(_ index: Int, _ word: UInt64) {
    // Fails if a peer has revoked the lease meanwhile.
    _ = words[index].compareExchange(expected: word, desired: 0, ordering: .sequentiallyConsistent)
  }

  fileprivate func end(_ index: Int, _ word: UInt64, _ ending: UInt64) {
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

  /// The process ID of the holder, which may be this process.
  public func holder(of leaseRequest: LeaseRequest) -> Int? { worker(of: leaseRequest).map { Int(process(of: $0)) } }

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
