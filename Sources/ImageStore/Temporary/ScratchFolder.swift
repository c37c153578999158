public import Threads

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// A folder for images that are not kept: each file lives for the 60 s after its delivery, and serves nothing else.
///
/// Every process has its own in `${TMPDIR:-/tmp}/imageworker-UID`, made when it is first needed. What a process leaves
/// when it ends is removed by a later one, once it is over 60 s old; a lock in the folder tells who is alive.
public actor ScratchFolder {
  private nonisolated let executor: ThreadExecutor
  private let environment: StoreEnvironment
  private let home: ProcessFolder
  private var counter: Int64 = 0
  /// By relative path.
  private var files = GracePeriods<String>()
  /// Files that somebody works on, by how many do.
  private var held: [String: Int] = [:]
  private var sweepAt: Int? = .min

  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// - Parameter parent: the folder of all scratch folders of this user; nil for the usual one.
  public init(parent: String? = nil, executor: ThreadExecutor, environment: StoreEnvironment = .system) {
    self.executor = executor
    self.environment = environment
    home = ProcessFolder(in: parent ?? ProcessFolder.usualParent, environment: environment)
  }

  private var folder: CacheFolder? { home.folder }

  private func openFolder() throws(StoreError) -> CacheFolder {
    let known = home.folder
    do throws(FileError) {
      let folder = try home.open()
      if let known, folder !== known {
        files = GracePeriods()
        held = [:]
      }
      return folder
    } catch {
      throw StoreError(error)
    }
  }

  /// The path of a new file for somebody else to make and to remove. It is not delivered to anyone.
  public func newPath() throws(StoreError) -> String {
    try openFolder().path + "/\(nextID()).part"
  }

  /// A temporary file for a large body that is not kept.
  public func makeSpool() throws(StoreError) -> BodySpool {
    let folder = try openFolder()
    let room = BodySpool.SpaceReservation(reserve: { _ in nil }, release: { true }, leave: { _ in false })
    do throws(FileError) {
      return try BodySpool(id: nextID(), in: folder, executor: executor, room: room)
    } catch {
      throw StoreError(error)
    }
  }

  /// Puts the image in a file that lives for 60 s from now.
  ///
  /// - Parameter body: bytes, or a spool of this folder or of a disk tier.
  /// - Returns: its absolute path.
  public func store(_ body: DiskTier.Body, format: String?) throws(StoreError) -> String {
    try put(format: format) { folder, id, path throws(FileError) in
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

  /// Puts a copy of a stored image, whose own file may go at any time, in a file that lives for 60 s from now.
  ///
  /// Throws `damaged` when the file is not there.
  ///
  /// - Returns: its absolute path.
  public func store(copyOf response: StoredResponse, in tier: DiskTier) throws(StoreError) -> String {
    let (files, original) = (environment.files, tier.absolutePath(of: response))
    let source: Int32
    do throws(FileError) {
      source = try files.openFile(original)
    } catch {
      throw error.isMissing ? StoreError(.damaged, error.message) : StoreError(error)
    }
    defer { closeFile(source) }
    return try put(format: response.format) { folder, id, path throws(FileError) in
      try folder.make(id: id, as: path) { file throws(FileError) in
        try files.forEachPiece(of: source, original) { piece throws(FileError) in
          try files.write(piece, to: file, path)
        }
      }
    }
  }

  /// A new file that `make` makes, delivered now. Returns its absolute path.
  private func put(
    format: String?, _ make: (CacheFolder, Int64, String) throws(FileError) -> Void
  ) throws(StoreError) -> String {
    let folder = try openFolder()
    let id = nextID()
    let path = FileName(id: id, digest: [], format: format).path
    do throws(FileError) {
      try make(folder, id, path)
    } catch {
      throw StoreError(error)
    }
    files.note(path, at: environment.now())
    return folder.path + "/" + path
  }

  /// Notes that a path that `store` gave is given to a host at `time` (Unix seconds): the 60 s start again.
  public func markDelivered(_ path: String, at time: Int) {
    guard let folder, let relative = relative(path), files[relative] != nil else { return }
    files.note(relative, at: time)
    folder.files.setModificationTime(of: relative, in: folder.descriptor, to: time)
  }

  /// Keeps a file that `store` gave for longer than its 60 s: `unpin` has to follow.
  public func hold(_ path: String) {
    if let relative = relative(path), files[relative] != nil { held[relative, default: 0] += 1 }
  }

  /// Ends a `hold`: the 60 s start again.
  ///
  /// - Parameter removing: whether the file goes at once, since it was delivered to nobody.
  public func unpin(_ path: String, removing: Bool) {
    guard let relative = relative(path), let count = held[relative] else { return }
    held[relative] = count > 1 ? count - 1 : nil
    guard removing, count == 1 else { return files.note(relative, at: environment.now()) }
    files.remove(relative)
    folder?.remove(relative)
  }

  /// Makes a file at a `newPath` one that is delivered now: it lives for 60 s.
  ///
  /// - Returns: its absolute path, which is another one.
  public func adopt(fileAt path: String, format: String?) throws(StoreError) -> String {
    let folder = try openFolder()
    let id = nextID()
    let new = FileName(id: id, digest: [], format: format).path
    do throws(FileError) {
      try folder.makeShard(of: id)
      try folder.files.rename(path, to: folder.path + "/" + new)
    } catch {
      try? folder.files.remove(path)
      throw StoreError(error)
    }
    files.note(new, at: environment.now())
    return folder.path + "/" + new
  }

  /// Removes the files whose time is over, and what dead processes left. Call it after each batch of work.
  ///
  /// - Returns: when it wants to be called again; nil when nothing is left to remove.
  public func installMaintenance() -> ContinuousClock.Instant? {
    let now = environment.now()
    if let at = sweepAt, at <= now {
      sweepAt = home.removeDead(sparing: { hasYoungFiles($0, now: now) }) ? endOfLife(deliveredAt: now) : nil
    }
    removeExpired(now: now)
    let next = [sweepAt, files.nextEnd].compactMap(\.self).min()
    return next.map { .now + .seconds(max($0 - now, 1)) }
  }

  /// Lets go of the folder. Files whose time is not over stay, for a later process to remove.
  public func close() {
    removeExpired(now: environment.now())
    home.close(removing: files.isEmpty)
    files = GracePeriods()
    held = [:]
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
    for path in files.takeExpired(now: now, sparing: { held[$0] != nil }) { folder?.remove(path) }
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
