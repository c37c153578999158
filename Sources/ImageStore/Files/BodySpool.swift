internal import Threads

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// A temporary file that takes a large body piece by piece, so that memory holds none of it.
///
/// Give it to `store` when the body is complete. Discarded, or dropped unfinished, it leaves nothing behind.
public actor BodySpool {
  nonisolated let id: Int64
  private let executor: ThreadExecutor
  private let folder: CacheFolder
  private let path: String
  private let room: SpaceReservation
  private var descriptor: Int32
  private var hash = SHA256()
  /// How many of the bytes are in `hash`: all of them, but for a file that was taken up.
  private var hashedCount: Int64 = 0
  private(set) public var byteCount: Int64 = 0
  private var isFinished = false
  private var digest: [UInt8]?

  /// Where the bytes of a spool are accounted for. Called on the executor's thread.
  struct SpaceReservation: Sendable {
    /// Makes room until the file may be of `byteCount` bytes.
    var reserve: @Sendable (_ byteCount: Int64) -> StoreError?
    /// Whether the file may be removed now that nobody uses it.
    var release: @Sendable () -> Bool
    /// Whether the file, of `byteCount` bytes, stays though nobody uses it.
    var leave: @Sendable (_ byteCount: Int64) -> Bool
  }

  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  init(id: Int64, in folder: CacheFolder, executor: ThreadExecutor, room: SpaceReservation) throws(FileError) {
    self.id = id
    self.folder = folder
    self.executor = executor
    self.room = room
    path = FileName.temporaryPath(id: id)
    descriptor = try folder.createTemporary(id: id)
  }

  /// One that goes on with a file that is there.
  init(takingUp id: Int64, in folder: CacheFolder, executor: ThreadExecutor, room: SpaceReservation) throws(FileError) {
    let path = FileName.temporaryPath(id: id)
    let file = try folder.files.openForAppending(path, in: folder.descriptor)
    do throws(FileError) {
      byteCount = try folder.files.status(of: file, path).byteCount
    } catch {
      close(file)
      throw error
    }
    self.id = id
    self.folder = folder
    self.executor = executor
    self.room = room
    self.path = path
    descriptor = file
  }

  deinit {
    guard descriptor >= 0 else { return }
    close(descriptor)
    executor.run { [room, folder, id, isFinished] in
      if room.release() && !isFinished { folder.removeTemporary(id: id) }
    }
  }

  /// Adds a piece of the body.
  ///
  /// Throws `noRoom` when the limit does not allow it, `diskFull` or `io`. What was added before can still be read, so
  /// that the body can go on elsewhere; `discard` is the caller's.
  public func append(_ bytes: [UInt8]) throws(StoreError) {
    let result = bytes.withUnsafeBytes { buffer in
      Result { () throws(StoreError) in try append(buffer) }
    }
    try result.get()
  }

  func append(_ bytes: UnsafeRawBufferPointer) throws(StoreError) {
    guard descriptor >= 0 else { throw StoreError(.io, "the temporary file was discarded") }
    if let error = room.reserve(byteCount + Int64(bytes.count)) { throw error }
    do throws(FileError) {
      try folder.files.write(bytes, to: descriptor, path)
    } catch {
      throw StoreError(error)
    }
    if hashedCount == byteCount {
      hash.update(bytes)
      hashedCount += Int64(bytes.count)
    }
    byteCount += Int64(bytes.count)
  }

  /// Reads back up to `count` of the bytes from `offset`.
  public func read(from offset: Int64, count: Int) throws(StoreError) -> [UInt8] {
    guard descriptor >= 0 else { throw StoreError(.io, "the temporary file was discarded") }
    return try readBytes(count, at: offset, from: descriptor, path, folder.files)
  }

  func copy(to file: Int32, _ target: String) throws(FileError) {
    guard descriptor >= 0 else { throw FileError(operation: .read, path: path, code: EBADF) }
    let files = folder.files
    try files.forEachPiece(of: descriptor, path) { piece throws(FileError) in try files.write(piece, to: file, target) }
  }

  /// The digest of all that was added; nothing may be added afterwards.
  public func takeDigest() throws(StoreError) -> [UInt8] {
    if let digest { return digest }
    while hashedCount < byteCount { try hashPiece() }
    let digest = hash.finish()
    self.digest = digest
    return digest
  }

  /// Reads what was there of a file that was taken up into the digest, piece by piece: other work of the thread comes
  /// in between. What is not read by then, `takeDigest` reads.
  func catchUp() {
    executor.run { [weak self] in
      self?.assumeIsolated { spool in
        guard spool.descriptor >= 0, spool.digest == nil, spool.hashedCount < spool.byteCount else { return }
        if (try? spool.hashPiece()) != nil { spool.catchUp() }
      }
    }
  }

  private func hashPiece() throws(StoreError) {
    let bytes = try read(from: hashedCount, count: Int(min(1 << 20, byteCount - hashedCount)))
    if bytes.isEmpty { throw StoreError(.io, "the temporary file was truncated") }
    hash.update(bytes)
    hashedCount += Int64(bytes.count)
  }

  /// Lets go of the file and leaves it for `DiskTier.takeUp`, if it may stay; else it is discarded. The spool is over
  /// then.
  public func leave() {
    guard descriptor >= 0 else { return }
    guard !isFinished, room.leave(byteCount) else { return discard() }
    close(descriptor)
    descriptor = -1
  }

  /// Removes the file, unless it has been stored. The spool is over then.
  public func discard() {
    guard descriptor >= 0 else { return }
    close(descriptor)
    descriptor = -1
    guard !isFinished else { return }
    folder.removeTemporary(id: id)
    _ = room.release()
  }

  /// Stores it: `publish` gets the digest and moves the file to its place. Whether that works or not, what was added
  /// can be read until `discard`.
  func finish(_ publish: (_ digest: [UInt8]) throws(StoreError) -> Void) throws(StoreError) {
    guard descriptor >= 0 else { throw StoreError(.io, "the temporary file was discarded") }
    try publish(takeDigest())
    isFinished = true
    _ = room.release()
  }
}

/// Up to `count` bytes of an open file from `offset`.
func readBytes(_ count: Int, at offset: Int64, from file: Int32, _ path: String, _ files: FileSystem)
  throws(StoreError) -> [UInt8]
{
  var failure: FileError?
  let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
    do throws(FileError) {
      initialized = try files.read(into: UnsafeMutableRawBufferPointer(buffer), at: offset, from: file, path)
    } catch {
      failure = error
    }
  }
  if let failure { throw StoreError(failure) }
  return bytes
}
