internal import ImageCodec
internal import ImageStore

/// A decode with at least one subscriber.
@LoadingActor
final class ActiveDecode {
  /// The source of the decode, as the cache or a transfer delivered it.
  private(set) var candidate: Candidate
  let step: DecodePlan.Step
  let transform: Transform?
  /// The key under which a `corrupt` failure is remembered.
  let subject: CorruptDecodeKey
  /// `PeerTable.clearCount` at the start of the decode: the clears so far by all workers of the directory.
  let clearCount: UInt64
  /// The decode's handle in the decoder pool; nil before submission.
  var ticket: DecodeTicket?
  /// The bytes of the source held in memory until a decoder reads them, as counted by `DecodeMemoryBudget`.
  private(set) var waitingBytes = 0
  /// The source file, kept until the decode ends.
  private(set) var file: DecodePreparation.HeldFile?

  /// - Parameter candidate: without its bytes.
  init(
    _ candidate: Candidate, _ step: DecodePlan.Step, _ transform: Transform?, _ subject: CorruptDecodeKey,
    clearCount: UInt64
  ) {
    (self.candidate, self.step, self.transform, self.subject) = (candidate, step, transform, subject)
    self.clearCount = clearCount
  }

  /// Replaces the candidate by that of a joining load if it is newer: the same content may have been stored again
  /// since.
  func adopt(_ other: Candidate) {
    let (own, new) = (candidate.response, other.response)
    guard (own.responseTime, own.id) < (new.responseTime, new.id) else { return }
    candidate = other
  }

  /// Marks the candidate as cleared if the clear removes it. The result is then delivered, but not cached.
  func mark(_ clear: Clear) { candidate.mark(clear) }

  /// Keeps the source in memory.
  func hold(_ bytes: [UInt8]) {
    candidate.bytes = bytes
    waitingBytes = bytes.count
  }

  /// Keeps the source in a file.
  func wait(with file: DecodePreparation.HeldFile) {
    self.file = file
    // A joining load may have supplied a candidate that has a file in the cache.
    guard case .scratch(let path, _) = file, candidate.location == .memory, !candidate.response.isOnDisk else { return }
    candidate.location = .scratch(path)
  }

  /// Keeps a scratch file after the decode: the loads that continue need it.
  func keepFile() {
    if case .scratch(let path, _)? = file { file = .scratch(path, isOwn: false) }
  }
}

/// The key of a remembered `corrupt` failure: a stored image, and the operation that failed on it.
///
/// The operation is part of the key because an error that fails one decode may lie in data that another never reads.
/// The response's id is part of it so that a new transfer is decoded again even if its content is the same: the earlier
/// file may have been damaged on disk.
struct CorruptDecodeKey: Hashable {
  static let capacity = 10_000

  let id: Int64
  let digest: [UInt8]
  let step: DecodePlan.Step
  /// The canonical form of the transform.
  let to: String

  init(_ response: StoredResponse, _ step: DecodePlan.Step, to transform: String) {
    (id, digest, self.step, to) = (response.id, response.content.digest, step, transform)
  }
}

/// The budget for source bytes that wait for a decoder in memory because no file has them. Beyond the limit they wait
/// in scratch files.
@LoadingActor
final class DecodeMemoryBudget {
  var limit = 16 << 20
  private(set) var count = 0

  /// Reserves bytes. Returns false if the limit would be exceeded; otherwise `giveBack` must follow when they no longer
  /// wait.
  func take(_ bytes: Int) -> Bool {
    guard count + bytes <= limit else { return false }
    count += bytes
    return true
  }

  func giveBack(_ bytes: Int) { count -= bytes }
}
