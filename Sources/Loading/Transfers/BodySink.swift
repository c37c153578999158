internal import HTTPTransport
internal import ImageStore
internal import Threads

/// A large body in a temporary file.
struct SpooledBody: Sendable {
  let spool: BodySpool
  /// Whether the file is in the scratch folder, because the body is not to be cached or the cache had no space for it.
  let isScratch: Bool
}

/// Passes a large body from the transport thread to the disk thread. Neither waits for the other.
///
/// If the cache cannot store the body (its limit, a full or broken disk), the body moves to the scratch folder and
/// continues there: a load does not fail because the cache does.
final class BodySink: Sendable {
  /// The maximum number of bytes that wait for the disk before the transfer pauses.
  static let capacity = 1 << 20
  /// The size of the pieces that are passed to the disk thread.
  private static let pieceSize = 128 << 10

  typealias MakeSpool = @Sendable () throws(StoreError) -> BodySpool

  private struct State {
    var piece: [UInt8] = []
    /// The bytes passed to the disk thread and not yet written.
    var waiting = 0
    var isPaused = false
    /// Whether a write has failed for good.
    var isBroken = false

    mutating func takePiece() -> [UInt8] {
      defer { piece = [] }
      waiting += piece.count
      return piece
    }
  }

  private let executor: ThreadExecutor
  private let makeCacheSpool: MakeSpool?
  private let makeScratchSpool: MakeSpool
  private let onRoom: @Sendable () -> Void
  private let state = Locked(State())
  /// Accessed only on the disk thread; the lock is there only for `Sendable`.
  private let body: Locked<Result<SpooledBody, StoreError>?>

  /// - Parameters:
  ///   - continuing: the part of the body that is already on disk.
  ///   - makeCacheSpool: nil for a body that is not to be cached.
  ///   - onRoom: called when the disk has caught up after `append` has returned `pause`.
  init(
    executor: ThreadExecutor, continuing spooled: SpooledBody? = nil, makeCacheSpool: MakeSpool?,
    makeScratchSpool: @escaping MakeSpool, onRoom: @escaping @Sendable () -> Void
  ) {
    body = Locked(spooled.map { .success($0) })
    (self.executor, self.onRoom) = (executor, onRoom)
    (self.makeCacheSpool, self.makeScratchSpool) = (makeCacheSpool, makeScratchSpool)
  }

  /// Appends a piece of the body. Returns `pause` if enough waits for the disk; `onRoom` will be called. Returns
  /// `abort` if the body cannot be stored; `finish` will report the error.
  func append(_ bytes: UnsafeRawBufferPointer) -> Verdict {
    let (piece, verdict) = state.withLock { state -> ([UInt8]?, Verdict) in
      if state.isBroken { return (nil, .abort) }
      state.piece.append(contentsOf: bytes)
      let piece = state.piece.count >= Self.pieceSize ? state.takePiece() : nil
      // Stay paused until `onRoom`, since a paused transfer waits for that call.
      if state.waiting > Self.capacity { state.isPaused = true }
      return (piece, state.isPaused ? .pause : .proceed)
    }
    if let piece { hand(over: piece) }
    return verdict
  }

  /// Passes buffered bytes to the disk thread, so that work submitted to it later finds them written.
  func flush() {
    let piece = state.withLock { $0.takePiece() }
    if !piece.isEmpty { hand(over: piece) }
  }

  /// The spool that the body is written to. Must be used on the disk thread.
  var spool: BodySpool? { body.withLock { $0 }.flatMap { try? $0.get().spool } }

  /// Ends the body, complete or not. `completion` gets it on the disk thread.
  func finish(_ completion: @escaping @Sendable (Result<SpooledBody, StoreError>) -> Void) {
    hand(over: state.withLock { $0.takePiece() })
    executor.run { completion(self.body.withLock { $0 } ?? .failure(StoreError(.io, "the body was not written"))) }
  }

  private func hand(over piece: [UInt8]) {
    executor.run {
      let body = self.write(piece, to: self.body.withLock { $0 })
      self.body.withLock { $0 = body }
      let resumes = self.state.withLock { state in
        if case .failure = body { state.isBroken = true }
        state.waiting -= piece.count
        guard state.isPaused, state.waiting <= Self.capacity / 2 else { return false }
        state.isPaused = false
        return true
      }
      if resumes { self.onRoom() }
    }
  }

  private func write(_ piece: [UInt8], to body: Result<SpooledBody, StoreError>?) -> Result<SpooledBody, StoreError> {
    do throws(StoreError) {
      guard let body else { return .success(try begin(with: piece)) }
      let current = try body.get()
      do throws(StoreError) {
        try current.spool.add(piece)
        return .success(current)
      } catch {
        if current.isScratch { throw error }
        return .success(try move(current.spool, adding: piece))
      }
    } catch {
      return .failure(error)
    }
  }

  private func begin(with piece: [UInt8]) throws(StoreError) -> SpooledBody {
    if let makeCacheSpool {
      do throws(StoreError) {
        let spool = try makeCacheSpool()
        try spool.add(piece)
        return SpooledBody(spool: spool, isScratch: false)
      } catch {
        // Fall through to the scratch folder, which may have space.
      }
    }
    let spool = try makeScratchSpool()
    try spool.add(piece)
    return SpooledBody(spool: spool, isScratch: true)
  }

  /// Copies the bytes written so far to the scratch folder and continues there.
  private func move(_ old: BodySpool, adding piece: [UInt8]) throws(StoreError) -> SpooledBody {
    let new = try makeScratchSpool()
    var offset: Int64 = 0
    // Copy up to `length`, not to the end of the file: the failed write may have left a part of its piece there.
    while offset < old.length {
      let bytes = try old.bytes(from: offset, count: Int(min(Int64(Self.pieceSize), old.length - offset)))
      if bytes.isEmpty { throw StoreError(.io, "the temporary file was truncated") }
      try new.add(bytes)
      offset += Int64(bytes.count)
    }
    try new.add(piece)
    old.drop()
    return SpooledBody(spool: new, isScratch: true)
  }
}

/// Synchronous access to a spool on the disk thread, its executor.
extension BodySpool {
  nonisolated func add(_ bytes: [UInt8]) throws(StoreError) {
    try assumeIsolatedThrowing { spool throws(StoreError) in try spool.append(bytes) }
  }

  nonisolated func bytes(from offset: Int64, count: Int) throws(StoreError) -> [UInt8] {
    try assumeIsolatedThrowing { spool throws(StoreError) in try spool.read(from: offset, count: count) }
  }

  nonisolated func drop() { assumeIsolated { $0.discard() } }

  /// Discards the spool, unless its file may stay for a later load.
  nonisolated func dropUnlessResumable() { assumeIsolated { $0.retainForResume() } }

  nonisolated func digest() throws(StoreError) -> [UInt8] {
    try assumeIsolatedThrowing { spool throws(StoreError) in try spool.finalizeDigest() }
  }

  nonisolated var length: Int64 { assumeIsolated { $0.byteCount } }
}
