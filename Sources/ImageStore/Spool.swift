internal import Threads

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// A temporary file that takes a large body piece by piece, so that memory holds none of it.
///
/// Give it to `store` when the body is complete. Discarded, or dropped unfinished, it leaves nothing behind.
public actor Spool {
  nonisolated let id: Int64
  private let executor: ThreadExecutor
  private let folder: CacheFolder
  private let path: String
  private let room: Room
  private var descriptor: Int32
  private var hash = SHA256()
  private(set) public var byteCount: Int64 = 0
  private var isFinished = false
  private var digest: [UInt8]?

  /// Where the bytes of a spool are accounted for. Called on the executor's thread.
  struct Room: Sendable {
    /// Makes room until the file may be of `byteCount` bytes.
    var reserve: @Sendable (_ byteCount: Int64) -> StoreError?
    var release: @Sendable () -> Void
  }

  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  init(id: Int64, in folder: CacheFolder, executor: ThreadExecutor, room: Room) throws(FileError) {
    self.id = id
    self.folder = folder
    self.executor = executor
    self.room = room
    path = FileName.temporaryPath(id: id)
    descriptor = try folder.createTemporary(id: id)
  }

  deinit {
    guard descriptor >= 0 else { return }
    close(descriptor)
    if !isFinished { folder.removeTemporary(id: id) }
    executor.run { [room] in room.release() }
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
    byteCount += Int64(bytes.count)
    hash.update(bytes)
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
  public func takeDigest() -> [UInt8] {
    let digest = digest ?? hash.finish()
    self.digest = digest
    return digest
  }

  /// Removes the file, unless it has been stored. The spool is over then.
  public func discard() {
    guard descriptor >= 0 else { return }
    close(descriptor)
    descriptor = -1
    guard !isFinished else { return }
    folder.removeTemporary(id: id)
    room.release()
  }

  /// Stores it: `publish` gets the digest and moves the file to its place. Whether that works or not, what was added can
  /// be read until `discard`.
  func finish(_ publish: (_ digest: [UInt8]) throws(StoreError) -> Void) throws(StoreError) {
    guard descriptor >= 0 else { throw StoreError(.io, "the temporary file was discarded") }
    try publish(takeDigest())
    isFinished = true
    room.release()
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
