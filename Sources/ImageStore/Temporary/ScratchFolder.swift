public import Platform
public import Threads

/// A folder for images that are not cached. Each file is kept for 60 s after its last delivery and is never served
/// again.
///
/// Each process has its own folder in `${TMPDIR:-/tmp}/imageworker-UID`, created at the first use. A later process
/// removes the files of an ended one once they are over 60 s old; a lock file shows that a process is alive.
public actor ScratchFolder {
  private nonisolated let executor: ThreadExecutor
  private let environment: StoreEnvironment
  private let home: ProcessFolder
  private var counter: Int64 = 0
  /// The deliveries, by relative path.
  private var files = GracePeriods<String>()
  /// Those of the files that no host knows.
  private var sources: Set<String> = []
  /// The number of readers of each file that has any.
  private var readers: [String: Int] = [:]
  private var sweepAt: Int? = .min

  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// - Parameter parent: the common folder of all processes of this user; nil for the default.
  public init(parent: String? = nil, executor: ThreadExecutor, environment: StoreEnvironment = .system) {
    self.executor = executor
    self.environment = environment
    home = ProcessFolder(in: parent ?? ProcessFolder.defaultParent, environment: environment)
  }

  private var folder: CacheFolder? { home.folder }

  private func openFolder() throws(StoreError) -> CacheFolder {
    let previous = home.folder
    let folder = try StoreError.mapping(home.open)
    if let previous, folder !== previous {
      (files, sources, readers) = (GracePeriods(), [], [:])
    }
    return folder
  }

  /// A unique path at which the caller may create a file and must remove it. The file is not delivered.
  public func newPath() throws(StoreError) -> String { try openFolder().path + "/\(nextID()).part" }

  /// Creates a temporary file for a large body that is not cached.
  public func makeSpool() throws(StoreError) -> BodySpool {
    let folder = try openFolder()
    let reservation = BodySpool.SpaceReservation(reserve: { _ in nil }, release: { true }, retain: { _ in false })
    return try StoreError.mapping { () throws(FileError) in
      try BodySpool(id: nextID(), in: folder, executor: executor, reservation: reservation)
    }
  }

  /// Writes the image to a file that is kept for 60 s from now.
  ///
  /// - Parameters:
  ///   - body: bytes, or a spool of this folder or of a disk tier.
  ///   - isSource: whether only a decoder will read it, unless `markDelivered` says otherwise.
  /// - Returns: the absolute path.
  public func store(
    _ body: DiskTier.Body, format: ImageFormat?, isSource: Bool = false
  ) throws(StoreError) -> String {
    try put(format: format, isSource: isSource) { folder, id, path throws(FileError) in
      switch body {
      case .bytes(let bytes): try folder.write(bytes, id: id, as: path)
      case .spool(let spool):
        try folder.make(id: id, as: path) { file throws(FileError) in
          try spool.assumeIsolatedThrowing { spool throws(FileError) in try spool.copy(to: file, path) }
        }
        spool.assumeIsolated { $0.discard() }
      }
    }
  }

  /// Copies a stored image, whose own file may be deleted at any time, to a file that is kept for 60 s from now.
  ///
  /// Throws `damaged` if the stored file does not exist.
  ///
  /// - Returns: the absolute path of the copy.
  public func store(copyOf response: StoredResponse, in tier: DiskTier) throws(StoreError) -> String {
    let (files, original) = (environment.files, tier.absolutePath(of: response))
    let source: Int32
    do throws(FileError) {
      source = try files.openFile(original)
    } catch {
      throw error.isMissing ? StoreError(.damaged, error.message) : StoreError(error)
    }
    defer { closeFile(source) }
    return try put(format: response.content.format) { folder, id, path throws(FileError) in
      try folder.make(id: id, as: path) { file throws(FileError) in
        try files.forEachPiece(of: source, original) { piece throws(FileError) in
          try files.write(piece, to: file, path)
        }
      }
    }
  }

  /// Creates a file with `make`, records its delivery now, and returns its absolute path.
  private func put(
    format: ImageFormat?, isSource: Bool = false, _ make: (CacheFolder, Int64, String) throws(FileError) -> Void
  ) throws(StoreError) -> String {
    let folder = try openFolder()
    let id = nextID()
    let path = FileName(id: id, digest: [], format: format).path
    do throws(FileError) {
      try make(folder, id, path)
    } catch {
      var error = error
      if !error.path.hasPrefix("/") { error.path = folder.path + "/" + error.path }
      throw StoreError(error)
    }
    files.record(path, at: environment.now())
    if isSource { sources.insert(path) }
    return folder.path + "/" + path
  }

  /// Records that a path returned by `store` is delivered at `time` (Unix seconds), which restarts its 60 s.
  public func markDelivered(_ path: String, at time: Int) {
    guard let folder, let relative = relative(path), files[relative] != nil else { return }
    files.record(relative, at: time)
    sources.remove(relative)
    folder.files.setModificationTime(of: relative, in: folder.descriptor, to: time)
  }

  /// Keeps a file that `store` returned. `removeReader` must follow.
  public func addReader(of path: String) {
    if let relative = relative(path), files[relative] != nil { readers[relative, default: 0] += 1 }
  }

  /// Ends an `addReader`, which restarts the 60 s.
  ///
  /// - Parameter removing: whether to delete the file at once because it was never delivered.
  public func removeReader(of path: String, removing: Bool) {
    guard let relative = relative(path), let count = readers[relative] else { return }
    readers[relative] = count > 1 ? count - 1 : nil
    guard removing, count == 1 else { return files.record(relative, at: environment.now()) }
    files.remove(relative)
    remove(relative)
  }

  /// Moves a file from a `newPath` to a delivered file that is kept for 60 s.
  ///
  /// - Returns: the new absolute path.
  public func adopt(fileAt path: String, format: ImageFormat?) throws(StoreError) -> String {
    try put(format: format) { folder, id, new throws(FileError) in
      do throws(FileError) {
        try folder.makeShard(of: id)
        try folder.files.rename(path, to: folder.path + "/" + new)
      } catch {
        try? folder.files.remove(path)
        throw error
      }
    }
  }

  /// Deletes files whose 60 s have ended and the folders of dead processes. Must be called after each batch of work.
  ///
  /// - Returns: when it must be called again; nil if nothing is left to delete.
  public func runMaintenance() -> Instant? {
    let now = environment.now()
    if let at = sweepAt, at <= now {
      sweepAt = home.removeDead(sparing: { hasYoungFiles($0, now: now) }) ? endOfLife(deliveredAt: now) : nil
    }
    removeExpired(now: now)
    let next = [sweepAt, files.nextEnd].compactMap(\.self).min()
    return next.map { .now + .seconds(max($0 - now, 1)) }
  }

  /// Closes the folder. It keeps the delivered files whose 60 s have not ended; a later process deletes them.
  public func close() {
    removeExpired(now: environment.now())
    home.close { [files, sources] in files[$0] != nil && !sources.contains($0) }
    (files, sources, readers) = (GracePeriods(), [], [:])
  }

  // MARK: Files

  private func nextID() -> Int64 {
    counter += 1
    return counter
  }

  private func relative(_ path: String) -> String? {
    guard let folder, path.hasPrefix(folder.path + "/") else { return nil }
    return String(path.dropFirst(folder.path.count + 1))
  }

  private func removeExpired(now: Int) {
    for path in files.removeExpired(now: now, sparing: { readers[$0] != nil }) { remove(path) }
  }

  private func remove(_ path: String) {
    sources.remove(path)
    folder?.remove(path)
  }

  private func hasYoungFiles(_ path: String, now: Int) -> Bool {
    let system = environment.files
    return ((try? system.list(path)) ?? []).contains { shard in
      ((try? system.list(path + "/" + shard)) ?? []).contains { name in
        guard let time = try? system.status(path + "/" + shard + "/" + name, follow: false).modificationSecond
        else { return false }
        return time <= now && endOfLife(deliveredAt: time) > now
      }
    }
  }
}
