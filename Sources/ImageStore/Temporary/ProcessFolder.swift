#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// A folder that belongs to this process, among those of others of the same user: made when it is first needed.
///
/// A lock in it tells who is alive. What a process leaves when it ends is removed by a later one.
final class ProcessFolder {
  /// Nil until `open`.
  private(set) var folder: CacheFolder?
  private let parent: String
  private let environment: StoreEnvironment
  private var lock: Int32 = -1

  private static let lockName = "lock"
  /// In seconds.
  private static let longestWithoutLock = 86_400

  /// `${TMPDIR:-/tmp}/imageworker-UID`.
  static var usualParent: String {
    let directory = getenv("TMPDIR").map { String(cString: $0) } ?? ""
    return (directory.hasPrefix("/") ? directory : "/tmp") + "/imageworker-\(geteuid())"
  }

  /// - Parameter parent: the folder of all such folders of this user.
  init(in parent: String, environment: StoreEnvironment) {
    self.parent = parent
    self.environment = environment
  }

  func open() throws(FileError) -> CacheFolder {
    if let folder {
      if folder.isInPlace { return folder }
      // Those who tidy up such directories have taken it.
      close(removing: false)
    }
    let system = environment.files
    try system.makeDirectories(parent)
    // In a directory that all may write, someone else could have made it first.
    let status = try system.status(parent, follow: false)
    guard status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid(), status.st_mode & 0o022 == 0 else {
      throw FileError(operation: .open, path: parent, code: EPERM)
    }
    while true {
      let path = parent + "/\(getpid())-" + hexadecimal(environment.random(), digits: 8)
      let opened = try CacheFolder(scratch: path, files: system)
      var file: Int32 = -1
      do throws(FileError) {
        file = try system.createFile(Self.lockName, in: opened.descriptor)
        // Between the two calls a starting process may have taken the folder for a dead one's.
        if try system.lock(file, path), try system.status(of: file, path).st_nlink > 0 {
          (folder, lock) = (opened, file)
          return opened
        }
        closeFile(file)
      } catch {
        if file >= 0 { closeFile(file) }
        removeWhole(path)
        throw error
      }
    }
  }

  /// Lets go of the folder.
  ///
  /// - Parameter removing: whether nothing in it is of use any more; else a later process removes it.
  func close(removing: Bool) {
    if let folder, removing { removeWhole(folder.path) }
    if lock >= 0 { closeFile(lock) }
    lock = -1
    folder = nil
  }

  /// Removes the folders of dead processes.
  ///
  /// - Parameter isOfUse: whether something in a folder, by its path, may still be of use to a host.
  /// - Returns: whether there was such a folder.
  func removeDead(sparing isOfUse: (String) -> Bool = { _ in false }) -> Bool {
    let system = environment.files
    var hasSpared = false
    for name in (try? system.list(parent)) ?? [] {
      let path = parent + "/" + name
      if path == folder?.path { continue }
      guard let status = try? system.status(path, follow: false), status.st_mode & S_IFMT == S_IFDIR else { continue }
      guard let lock = try? system.openFile(path + "/" + Self.lockName) else {
        // Of somebody who died before the lock was there or after it was gone, unless it has just been made. Those who
        // tidy up such directories may have taken the lock and left the files.
        let age = environment.now() - status.modificationSecond
        if age >= Self.longestWithoutLock, !Self.mayLive(name), !isOfUse(path) {
          removeWhole(path)
        } else if age >= deliveredFileLifetime {
          try? system.removeDirectory(path)
        }
        continue
      }
      defer { closeFile(lock) }
      guard (try? system.lock(lock, path)) ?? false else { continue }
      if isOfUse(path) { hasSpared = true } else { removeWhole(path) }
    }
    return hasSpared
  }

  /// Whether a process has the number that a folder's name begins with.
  private static func mayLive(_ name: String) -> Bool {
    guard let process = name.split(separator: "-").first.flatMap({ pid_t($0) }), process > 0 else { return false }
    return kill(process, 0) == 0 || errno != ESRCH
  }

  /// Removes files, and folders of files; the lock last but for the folder itself.
  private func removeWhole(_ path: String) {
    let system = environment.files
    for name in (try? system.list(path)) ?? [] where name != Self.lockName {
      let entry = path + "/" + name
      if (try? system.remove(entry)) != nil { continue }
      for name in (try? system.list(entry)) ?? [] { try? system.remove(entry + "/" + name) }
      try? system.removeDirectory(entry)
    }
    try? system.remove(path + "/" + Self.lockName)
    try? system.removeDirectory(path)
  }
}
