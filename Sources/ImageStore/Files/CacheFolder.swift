internal import Platform

/// The folder of one namespace: 256 shards of image files, accessed through an open directory descriptor.
final class CacheFolder: Sendable {
  let path: String
  let descriptor: Int32
  let files: FileSystem
  /// The block size: files use whole blocks.
  let blockSize: Int64

  /// Opens the folder; if `writable`, creates missing directories.
  init(path: String, writable: Bool, files: FileSystem) throws(FileError) {
    self.path = path
    self.files = files
    if writable { try files.makeDirectories(path) }
    let descriptor = try files.openDirectory(path)
    do throws(FileError) {
      blockSize = writable ? try Self.prepare(descriptor, files) : 4096
    } catch {
      close(descriptor)
      throw error
    }
    self.descriptor = descriptor
  }

  /// Creates the folder of the peer locks. Returns the block size.
  private static func prepare(_ descriptor: Int32, _ files: FileSystem) throws(FileError) -> Int64 {
    try files.makeDirectoryIfMissing(PeerLock.directory, in: descriptor)
    return try files.space(of: descriptor).block
  }

  /// Creates a scratch folder of the same layout, for files that are not cached.
  init(scratch path: String, files: FileSystem) throws(FileError) {
    self.path = path
    self.files = files
    blockSize = 4096
    try files.makeDirectory(path)
    do throws(FileError) {
      descriptor = try files.openDirectory(path)
    } catch {
      try? files.removeDirectory(path)
      throw error
    }
  }

  deinit { close(descriptor) }

  /// Whether the path still leads to this folder. It does not after the folder was deleted or replaced.
  var isInPlace: Bool {
    do throws(FileError) {
      let (here, own) = (try files.status(path), try files.status(of: descriptor, path))
      return here.st_ino == own.st_ino && here.st_dev == own.st_dev
    } catch {
      return !error.isMissing
    }
  }

  static let shards = (0..<256).map { FileName.shard(of: Int64($0)) }

  /// The allocated size of a file of `byteCount` bytes. The result is clamped for a length that exceeds every disk, as
  /// a server may announce it, so that sums do not overflow.
  func allocated(_ byteCount: Int64) -> Int64 {
    (min(byteCount, .max / 4) + blockSize - 1) / blockSize * blockSize
  }

  /// Creates the temporary file of `id` in the shard of its final path.
  func createTemporary(id: Int64) throws(FileError) -> Int32 {
    try inShard(of: id) { () throws(FileError) in try files.createFile(FileName.temporaryPath(id: id), in: descriptor) }
  }

  /// Renames the temporary file to that of another id.
  func moveTemporary(id: Int64, to newID: Int64) throws(FileError) {
    try inShard(of: newID) { () throws(FileError) in try publish(id: id, as: FileName.temporaryPath(id: newID)) }
  }

  /// Runs `work`, and runs it again if the shard had to be created.
  private func inShard<Result>(of id: Int64, _ work: () throws(FileError) -> Result) throws(FileError) -> Result {
    do throws(FileError) {
      return try work()
    } catch {
      guard error.isMissing else { throw error }
      try makeShard(of: id)
      return try work()
    }
  }

  func makeShard(of id: Int64) throws(FileError) {
    try files.makeDirectoryIfMissing(FileName.shard(of: id), in: descriptor)
  }

  /// Creates a file that `fill` writes. It has its final name at once: no one looks for it before the caller names it.
  /// Leaves nothing behind on failure.
  func make(id: Int64, as path: String, _ fill: (Int32) throws(FileError) -> Void) throws(FileError) {
    let file = try inShard(of: id) { () throws(FileError) in try files.createFile(path, in: descriptor) }
    defer { close(file) }
    do throws(FileError) {
      try fill(file)
    } catch {
      remove(path)
      throw error
    }
  }

  func write(_ bytes: [UInt8], id: Int64, as path: String) throws(FileError) {
    try make(id: id, as: path) { file throws(FileError) in try files.write(bytes, to: file, path) }
  }

  /// Renames the temporary file of `id` to `path`.
  func publish(id: Int64, as path: String) throws(FileError) {
    try files.rename(FileName.temporaryPath(id: id), to: path, in: descriptor)
  }

  /// Removes a file. If that fails, the orphan sweep finds it later.
  func remove(_ path: String) { try? files.remove(path, in: descriptor) }

  func removeTemporary(id: Int64) { remove(FileName.temporaryPath(id: id)) }
}

/// The identity of the file at a path (device and inode). It changes when the file is replaced.
struct FileIdentity: Equatable {
  private var device: UInt64
  private var number: UInt64

  /// Nil if no file exists at the path.
  init?(_ path: String, in folder: CacheFolder) {
    guard let status = try? folder.files.status(path, in: folder.descriptor) else { return nil }
    device = UInt64(bitPattern: Int64(status.st_dev))
    number = UInt64(status.st_ino)
  }
}

/// The open directory of a disk tier, with this worker's lock file.
final class OpenFolder {
  let folder: CacheFolder
  let lock: PeerLock?
  /// The run of the system whose files need no verification, or this worker if the system does not name its runs.
  let boot: String
  let bootNumber: Int64
  private var lastID: Int64

  init(folder: CacheFolder, lock: PeerLock?, boot: String?) {
    self.folder = folder
    self.lock = lock
    self.boot = boot ?? "worker \(lock?.instance ?? 0)"
    bootNumber = fnv1a(self.boot)
    // The counter starts at a random shard, so that the first shards do not fill up.
    let instance = Int64(lock?.instance ?? 0)
    lastID = instance << 32 | instance & 0xff
  }

  func nextID() -> Int64 {
    lastID += 1
    return lastID
  }

  /// Continues the ids of an earlier worker that drew the same instance number.
  func continueIDs(after id: Int64) { lastID = max(lastID, id) }
}
