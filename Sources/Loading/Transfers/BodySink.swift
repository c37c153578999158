internal import HTTPTransport
internal import ImageStore
internal import Threads

/// A large body in a temporary file.
struct SpooledBody: Sendable {
  let spool: BodySpool
  /// Whether it lies in the scratch folder, because it is not to be kept or the cache had no room for it.
  let isScratch: Bool
}

/// Carries a large body from the transport's thread to the disk's, without either waiting for the other.
///
/// Where the cache cannot take it (its limit, a full or broken disk), the body moves to the scratch folder and goes on
/// there: the load does not fail because the cache does.
final class BodySink: Sendable {
  /// How many bytes may be waiting for the disk.
  static let capacity = 1 << 20
  /// Bytes are handed over in pieces of this size.
  private static let pieceSize = 128 << 10

  typealias MakeSpool = @Sendable () throws(StoreError) -> BodySpool

  private struct State {
    var piece: [UInt8] = []
    /// Bytes handed over and not yet written.
    var waiting = 0
    var isPaused = false
    /// Nothing more can be written.
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
  /// Touched on the disk's thread only; the lock is there for `Sendable` alone.
  private let body: Locked<Result<SpooledBody, StoreError>?>

  /// - Parameters:
  ///   - continuing: what is there of the body already.
  ///   - makeCacheSpool: nil for a body that is not to be kept.
  ///   - onRoom: called when the disk has caught up after an `append` has said to pause.
  init(
    executor: ThreadExecutor, continuing spooled: SpooledBody? = nil, makeCacheSpool: MakeSpool?,
    makeScratchSpool: @escaping MakeSpool, onRoom: @escaping @Sendable () -> Void
  ) {
    body = Locked(spooled.map { .success($0) })
    self.executor = executor
    self.makeCacheSpool = makeCacheSpool
    self.makeScratchSpool = makeScratchSpool
    self.onRoom = onRoom
  }

  /// Takes a piece of the body. To pause means: enough for now; `onRoom` will be called. To abort: there is no place for
  /// it, as `finish` will say.
  func append(_ bytes: UnsafeRawBufferPointer) -> Verdict {
    let (piece, verdict) = state.withLock { state -> ([UInt8]?, Verdict) in
      if state.isBroken { return (nil, .abort) }
      state.piece.append(contentsOf: bytes)
      let piece = state.piece.count >= Self.pieceSize ? state.takePiece() : nil
      // Only `onRoom` ends a pause: whoever has been told to wait waits for that.
      if state.waiting > Self.capacity { state.isPaused = true }
      return (piece, state.isPaused ? .pause : .proceed)
    }
    if let piece { hand(over: piece) }
    return verdict
  }

  /// Hands over what has gathered, so that work given to the executor from here on finds it written.
  func flush() {
    let piece = state.withLock { $0.takePiece() }
    if !piece.isEmpty { hand(over: piece) }
  }

  /// Where the body is being written, on the disk's thread.
  var spool: BodySpool? { body.withLock { $0 }.flatMap { try? $0.get().spool } }

  /// The body is complete or broken off: `completion` gets it, on the disk's thread.
  func finish(_ completion: @escaping @Sendable (Result<SpooledBody, StoreError>) -> Void) {
    hand(over: state.withLock { $0.takePiece() })
    executor.run { completion(self.body.withLock { $0 } ?? .failure(StoreError(.io, "nothing was written"))) }
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

  private func write(
    _ piece: [UInt8], to body: Result<SpooledBody, StoreError>?
  ) -> Result<SpooledBody, StoreError> {
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
        // The scratch folder may still have room.
      }
    }
    let spool = try makeScratchSpool()
    try spool.add(piece)
    return SpooledBody(spool: spool, isScratch: true)
  }

  /// Goes on in the scratch folder with what was written so far.
  private func move(_ old: BodySpool, adding piece: [UInt8]) throws(StoreError) -> SpooledBody {
    let new = try makeScratchSpool()
    var offset: Int64 = 0
    // Not to the file's end: the write that failed may have left a part of its piece there.
    while offset < old.length {
      let bytes = try old.bytes(from: offset, count: Int(min(Int64(Self.pieceSize), old.length - offset)))
      if bytes.isEmpty { throw StoreError(.io, "the temporary file was cut short") }
      try new.add(bytes)
      offset += Int64(bytes.count)
    }
    try new.add(piece)
    old.drop()
    return SpooledBody(spool: new, isScratch: true)
  }
}

/// A spool as it is used on the disk's thread, where it lives: without waiting.
extension BodySpool {
  nonisolated func add(_ bytes: [UInt8]) throws(StoreError) {
    try assumeIsolatedThrowing { spool throws(StoreError) in try spool.append(bytes) }
  }

  nonisolated func bytes(from offset: Int64, count: Int) throws(StoreError) -> [UInt8] {
    try assumeIsolatedThrowing { spool throws(StoreError) in try spool.read(from: offset, count: count) }
  }

  nonisolated func drop() { assumeIsolated { $0.discard() } }

  /// Drops it, unless its file may stay for a load to come.
  nonisolated func unpin() { assumeIsolated { $0.leave() } }

  nonisolated func digest() throws(StoreError) -> [UInt8] {
    try assumeIsolatedThrowing { spool throws(StoreError) in try spool.takeDigest() }
  }

  nonisolated var length: Int64 { assumeIsolated { $0.byteCount } }
}
