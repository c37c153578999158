internal import Synchronization

/// What a transfer is for, as the workers of a directory tell it apart, and what stood on the board of such transfers
/// when it was last looked.
public struct LeaseRequest: Sendable {
  /// Two that are equal here and mean different things wait for each other in vain, which costs time and nothing else.
  let hash: UInt64
  /// How many leases of the same bucket have ended.
  var leaseEpoch = LeaseEpoch(word: 0)
  /// The row of the worker that had the lease when it was asked for.
  var holder: UInt64?

  struct LeaseEpoch: Equatable {
    let word: UInt64

    /// Of those that came to nothing.
    var failed: UInt64 { word >> 32 }

    static let succeeded: UInt64 = 1
    static let failed: UInt64 = 1 << 32
  }

  var bucket: Int { PeerTable.Layout.bucket(hash % UInt64(PeerTable.Layout.buckets)) }
  /// The slot's word, but for its lowest byte.
  var tag: UInt64 { hash & ~0xff }
}

/// The right to transfer something for all workers of a directory, for as long as it is referred to.
///
/// The others wait for it, then look into the index. It has to outlive the commit of what it brings; where that is not
/// to be, it ends with its last reference.
public final class Lease: Sendable {
  private let peerTable: PeerTable
  private let place: Int
  private let word: UInt64
  /// What its end adds to those of its bucket.
  private let ending = Atomic<UInt64>(LeaseRequest.LeaseEpoch.failed)

  fileprivate init(peerTable: PeerTable, place: Int, word: UInt64) {
    self.peerTable = peerTable
    self.place = place
    self.word = word
    peerTable.leaseCount.add(1, ordering: .relaxed)
  }

  deinit {
    peerTable.end(place, word, ending.load(ordering: .relaxed))
    peerTable.leaseCount.subtract(1, ordering: .relaxed)
  }

  /// What it was for is in the index, committed: it ends well, with its last reference.
  func succeed() { ending.store(LeaseRequest.LeaseEpoch.succeeded, ordering: .relaxed) }

  /// What comes is not for the others any more: it ends, with its last reference, as if it had never been.
  public func abandon() { ending.store(0, ordering: .relaxed) }
}

/// One transfer among all workers.
///
/// A bucket has a word that counts the leases that ended in it, and seven slots. A slot's word is 0 or names what is
/// transferred and the worker that does. Where all slots are taken, it goes without a lease.
extension PeerTable {
  public enum Answer: Sendable {
    case taken(Lease)
    /// Nobody has it, and the index may have what was not there when the claim was made.
    case cacheChanged
    /// Another worker transfers it.
    case held
    /// There is no lease to be had: it is this worker's own, or there is no room.
    case none
  }

  /// A claim to a transfer, to be made before the index is looked into.
  ///
  /// - Parameter hash: the same in all workers for the same answer.
  public func leaseRequest(_ hash: UInt64) -> LeaseRequest {
    var leaseRequest = LeaseRequest(hash: hash)
    refresh(&leaseRequest)
    return leaseRequest
  }

  /// Has the claim be as if it were made now.
  public func refresh(_ leaseRequest: inout LeaseRequest) {
    leaseRequest.leaseEpoch = leaseEpoch(in: leaseRequest.bucket)
    leaseRequest.holder = nil
  }

  /// Takes the lease if nobody has it. Else the claim is refreshed, and knows who has.
  public func take(_ leaseRequest: inout LeaseRequest) -> Answer {
    let leaseEpoch = leaseEpoch(in: leaseRequest.bucket)
    let answer = take(leaseRequest, &leaseRequest.holder)
    if case .held = answer { leaseRequest.leaseEpoch = leaseEpoch }
    return answer
  }

  private func take(_ leaseRequest: LeaseRequest, _ holder: inout UInt64?) -> Answer {
    guard let row else { return .none }
    let (bucket, word) = (leaseRequest.bucket, leaseRequest.tag | row)
    var taken: Int?
    while taken == nil {
      var free: Int?
      for place in Self.slots(of: bucket) {
        let other = words[place].load(ordering: .sequentiallyConsistent)
        if other == 0 { free = free ?? place }
        guard other != 0, other & ~0xff == leaseRequest.tag else { continue }
        holder = Self.row(ofHolder: other)
        return other == word ? .none : .held
      }
      guard let free else { return .none }
      if words[free].compareExchange(expected: 0, desired: word, ordering: .sequentiallyConsistent).exchanged {
        taken = free
      }
    }
    guard let taken else { return .none }
    // Of two that took it in two slots at the same moment, one at least sees the other here.
    for place in Self.slots(of: bucket) where place != taken {
      let other = words[place].load(ordering: .sequentiallyConsistent)
      guard other != 0, other & ~0xff == leaseRequest.tag else { continue }
      holder = Self.row(ofHolder: other)
      giveBack(taken, word)
      return .held
    }
    // Who ended one says so before it is free.
    if hasPeers, leaseEpoch(in: bucket) != leaseRequest.leaseEpoch {
      giveBack(taken, word)
      return .cacheChanged
    }
    return .taken(Lease(peerTable: self, place: taken, word: word))
  }

  private func giveBack(_ place: Int, _ word: UInt64) {
    // Not if another worker has taken it for abandoned.
    _ = words[place].compareExchange(expected: word, desired: 0, ordering: .sequentiallyConsistent)
  }

  fileprivate func end(_ place: Int, _ word: UInt64, _ ending: UInt64) {
    // First, so that who finds the slot free finds this, too.
    let bucket = place - place % Layout.wordsOfBucket
    words[bucket].wrappingAdd(ending, ordering: .sequentiallyConsistent)
    giveBack(place, word)
  }

  /// What has become of what another worker transfers.
  public enum Progress: Sendable, Equatable {
    /// - Parameter worker: the row of the one that does.
    case running(worker: UInt64)
    /// - Parameter failed: whether it came to nothing, rather than that its worker has died.
    case over(failed: Bool)
  }

  public func progress(of leaseRequest: LeaseRequest) -> Progress {
    let worker = worker(of: leaseRequest)
    let leaseEpoch = leaseEpoch(in: leaseRequest.bucket)
    // It may have ended, and another have begun anew; or another has taken over from a dead one.
    if let worker, worker != row, worker == leaseRequest.holder || leaseEpoch == leaseRequest.leaseEpoch { return .running(worker: worker) }
    return .over(failed: leaseEpoch.failed != leaseRequest.leaseEpoch.failed)
  }

  /// Takes the lease from a worker that has stopped. It may be the one that goes on with it, or any other.
  public func revoke(_ leaseRequest: LeaseRequest, from worker: UInt64) {
    guard let place = place(of: leaseRequest) else { return }
    _ = words[place].compareExchange(expected: leaseRequest.tag | worker, desired: 0, ordering: .sequentiallyConsistent)
  }

  /// The process that transfers it, this one included.
  public func holder(of leaseRequest: LeaseRequest) -> Int? { worker(of: leaseRequest).map { Int(process(of: $0)) } }

  private func worker(of leaseRequest: LeaseRequest) -> UInt64? {
    guard let place = place(of: leaseRequest) else { return nil }
    let worker = Self.row(ofHolder: words[place].load(ordering: .sequentiallyConsistent))
    return worker == 0 ? nil : worker
  }

  static func row(ofHolder word: UInt64) -> UInt64 { word & 0xff }

  private static func slots(of bucket: Int) -> Range<Int> { bucket + 1..<bucket + Layout.wordsOfBucket }

  private func leaseEpoch(in bucket: Int) -> LeaseRequest.LeaseEpoch {
    LeaseRequest.LeaseEpoch(word: words[bucket].load(ordering: .sequentiallyConsistent))
  }

  private func place(of leaseRequest: LeaseRequest) -> Int? {
    Self.slots(of: leaseRequest.bucket).first { place in
      let word = words[place].load(ordering: .sequentiallyConsistent)
      return word != 0 && word & ~0xff == leaseRequest.tag
    }
  }
}
