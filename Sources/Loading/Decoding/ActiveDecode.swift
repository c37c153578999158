internal import ImageCodec
internal import ImageStore

/// A decode that somebody waits for.
@LoadingActor
final class ActiveDecode {
  /// What is decoded, as the cache or a transfer brought it.
  private(set) var candidate: Candidate
  let step: DecodePlan.Step
  let transform: Transform?
  /// What it is remembered by, should it not decode.
  let subject: CorruptDecodeKey
  /// How often the cache had been cleared when it began, by all workers.
  let clearCount: UInt64
  /// Where it is in the pool.
  var ticket: DecodeTicket?
  /// How many bytes wait in memory with it.
  private(set) var waitingBytes = 0
  /// The file that waits with it.
  private(set) var file: DecodePreparation.HeldFile?

  /// - Parameter candidate: without its bytes.
  init(
    _ candidate: Candidate, _ step: DecodePlan.Step, _ transform: Transform?, _ subject: CorruptDecodeKey,
    clearCount: UInt64
  ) {
    (self.candidate, self.step, self.transform, self.subject) = (candidate, step, transform, subject)
    self.clearCount = clearCount
  }

  /// Takes on what a load that joins knows of the same content, if that is newer: it may have been stored anew since.
  func adopt(_ other: Candidate) {
    let (own, new) = (candidate.response, other.response)
    guard (own.responseTime, own.id) < (new.responseTime, new.id) else { return }
    candidate = other
  }

  /// Where nothing is left of what is decoded, the result is delivered, but not kept.
  func mark(_ clear: Clear) { candidate.mark(clear) }

  /// The bytes wait in memory.
  func hold(_ bytes: [UInt8]) {
    candidate.bytes = bytes
    waitingBytes = bytes.count
  }

  /// What is decoded lies in a file.
  func wait(with file: DecodePreparation.HeldFile) {
    self.file = file
    // A joining load may have known of a file in the cache.
    guard case .scratch(let path, _) = file, candidate.place == .memory, !candidate.response.isOnDisk else { return }
    candidate.place = .scratch(path)
  }

  /// A scratch file is of use to the loads that go on.
  func keepFile() {
    if case .scratch(let path, _)? = file { file = .scratch(path, isOwn: false) }
  }
}
