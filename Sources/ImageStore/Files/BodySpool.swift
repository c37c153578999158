internal import Platform
internal import Threads

/// A temporary file that receives a large body piece by piece, so that no memory is needed for it.
///
/// Pass it to `store` when the body is complete. If it is discarded or released before that, its file is removed.
public actor BodySpool {
  nonisolated let id: Int64
  private let executor: ThreadExecutor
  private let folder: CacheFolder
  /// In messages.
  private let path: String
  private let reservation: SpaceReservation
  private var descriptor: Int32
  private var hash = SHA256()
  /// The number of bytes in `hash`: all of them, except in a resumed file that is not read completely yet.
  private var hashedCount: Int64 = 0
  private(set) public var byteCount: Int64 = 0
  private var isFinished = false
  private var digest: [UInt8]?

  /// The accounting of a spool's bytes. Called on the executor's thread.
  struct SpaceReservation: Sendable {
    /// Reserves space for a file of `byteCount` bytes.
    var reserve: @Sendable (_ byteCount: Int64) -> StoreError?
    /// Ends the reservation. Returns whether the file may be removed.
    var release: @Sendable () -> Bool
    /// Ends the reservation of a file of `byteCount` bytes. Returns whether the file is retained for resuming.
    var retain: @Sendable (_ byteCount: Int64) -> Bool
  }

  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  init(id: Int64, in folder: CacheFolder, executor: ThreadExecutor, reservation: SpaceReservation) throws(FileError) {
    (self.id, self.folder, self.executor, self.reservation) = (id, folder, executor, reservation)
    path = folder.path + "/" + FileName.temporaryPath(id: id)
    descriptor = try folder.createTemporary(id: id)
  }

  /// Opens the temporary file of a broken transfer for resuming.
  init(resuming id: Int64, in folder: CacheFolder, executor: ThreadExecutor, reservation: SpaceReservation)
    throws(FileError)
  {
    let path = FileName.temporaryPath(id: id)
    let file = try folder.files.openForAppending(path, in: folder.descriptor)
    do throws(FileError) {
      byteCount = try folder.files.status(of: file, path).byteCount
    } catch {
      close(file)
      throw error
    }
    (self.id, self.folder, self.executor, self.reservation) = (id, folder, executor, reservation)
    (self.path, descriptor) = (folder.path + "/" + path, file)
  }

  deinit {
    guard descriptor >= 0 else { return }
    close(descriptor)
    executor.run { [reservation, folder, id, isFinished] in
      if reservation.release() && !isFinished { folder.removeTemporary(id: id) }
    }
  }

  /// Adds a piece of the body.
  ///
  /// Throws `overLimit` if the limit does not allow it, `diskFull` or `io`. The bytes added before remain readable, so
  /// that the caller can move the body elsewhere; the caller must `discard` the spool.
  public func append(_ bytes: [UInt8]) throws(StoreError) {
    let result = bytes.withUnsafeBytes { buffer in
      Result { () throws(StoreError) in try append(buffer) }
    }
    try result.get()
  }

  func append(_ bytes: UnsafeRawBufferPointer) throws(StoreError) {
    guard descriptor >= 0 else { throw StoreError(.io, "the temporary file was discarded") }
    assert(digest == nil, "a body whose digest is final must not grow")
    if let error = reservation.reserve(byteCount + Int64(bytes.count)) { throw error }
    try StoreError.mapping { () throws(FileError) in try folder.files.write(bytes, to: descriptor, path) }
    if hashedCount == byteCount {
      hash.update(bytes)
      hashedCount += Int64(bytes.count)
    }
    byteCount += Int64(bytes.count)
  }

  /// Reads up to `count` bytes from `offset`.
  public func read(from offset: Int64, count: Int) throws(StoreError) -> [UInt8] {
    guard descriptor >= 0 else { throw StoreError(.io, "the temporary file was discarded") }
    return try readBytes(count, at: offset, from: descriptor, path, folder.files)
  }

  func copy(to file: Int32, _ target: String) throws(FileError) {
    guard descriptor >= 0 else { throw FileError(operation: .read, path: path, code: EBADF) }
    let files = folder.files
    try files.forEachPiece(of: descriptor, path) { piece throws(FileError) in try files.write(piece, to: file, target) }
  }

  /// The digest of all bytes. Nothing may be added afterwards.
  public func finalizeDigest() throws(StoreError) -> [UInt8] {
    if let digest { return digest }
    while hashedCount < byteCount { try hashPiece() }
    let digest = hash.finish()
    self.digest = digest
    return digest
  }

  /// Reads the earlier bytes of a resumed file into the digest, in pieces between other work of the thread.
  /// `finalizeDigest` reads the remainder.
  func hashEarlierBytes() {
    executor.run { [weak self] in
      self?.assumeIsolated { spool in
        guard spool.descriptor >= 0, spool.digest == nil, spool.hashedCount < spool.byteCount else { return }
        if (try? spool.hashPiece()) != nil { spool.hashEarlierBytes() }
      }
    }
  }

  private func hashPiece() throws(StoreError) {
    let bytes = try read(from: hashedCount, count: Int(min(1 << 20, byteCount - hashedCount)))
    if bytes.isEmpty { throw StoreError(.io, "the temporary file was truncated") }
    hash.update(bytes)
    hashedCount += Int64(bytes.count)
  }

  /// Closes the file and retains it for `DiskTier.resumePartial` if that is allowed, or discards it. Ends the spool.
  public func retainForResume() {
    guard descriptor >= 0 else { return }
    guard !isFinished, reservation.retain(byteCount) else { return discard() }
    close(descriptor)
    descriptor = -1
  }

  /// Removes the file unless it has been stored. Ends the spool.
  public func discard() {
    guard descriptor >= 0 else { return }
    close(descriptor)
    descriptor = -1
    guard !isFinished else { return }
    folder.removeTemporary(id: id)
    _ = reservation.release()
  }

  /// Calls `publish` with the digest to move the file to its final path. Whether that succeeds or not, the bytes remain
  /// readable until `discard`.
  func finish(_ publish: (_ digest: [UInt8]) throws(StoreError) -> Void) throws(StoreError) {
    guard descriptor >= 0 else { throw StoreError(.io, "the temporary file was discarded") }
    assert(!isFinished, "a body can be published once")
    try publish(finalizeDigest())
    isFinished = true
    _ = reservation.release()
  }
}

/// Up to `count` bytes of an open file from `offset`.
func readBytes(
  _ count: Int, at offset: Int64, from file: Int32, _ path: String, _ files: FileSystem,
  while isWanted: () -> Bool = { true }
) throws(StoreError) -> [UInt8] {
  var failure: FileError?
  let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
    do throws(FileError) {
      initialized = try files.read(
        into: UnsafeMutableRawBufferPointer(buffer), at: offset, from: file, path, while: isWanted)
    } catch {
      failure = error
    }
  }
  if let failure { throw StoreError(failure) }
  return bytes
}
