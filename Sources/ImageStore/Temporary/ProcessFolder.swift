internal import Platform
internal import Text

/// A folder of this process, in a parent folder for all processes of the same user. Created at the first use.
///
/// A lock file in it shows that the process is alive. A later process removes the folder of an ended one.
final class ProcessFolder {
  /// Nil until `open`.
  private(set) var folder: CacheFolder?
  private let parent: String
  private let environment: StoreEnvironment
  private var lock: Int32 = -1

  private static let lockName = "lock"
  /// How old a folder without a lock file must be before it is removed, in seconds.
  private static let minAgeWithoutLock = 86_400

  /// `${TMPDIR:-/tmp}/imageworker-UID`.
  static var defaultParent: String {
    let directory = getenv("TMPDIR").map { String(cString: $0) } ?? ""
    return (directory.hasPrefix("/") ? directory : "/tmp") + "/imageworker-\(geteuid())"
  }

  /// - Parameter parent: the common folder of all processes of this user.
  init(in parent: String, environment: StoreEnvironment) {
    self.parent = parent
    self.environment = environment
  }

  func open() throws(FileError) -> CacheFolder {
    if let folder {
      if folder.isInPlace { return folder }
      // A cleaner of temporary directories has removed it.
      close { _ in true }
    }
    let system = environment.files
    try system.makeDirectories(parent)
    // In a world-writable directory, another user could have created it first.
    let status = try system.status(parent, follow: false)
    guard status.st_mode & S_IFMT == S_IFDIR, status.st_uid == geteuid(), status.st_mode & 0o022 == 0 else {
      throw FileError(
        operation: .open, path: parent, code: EPERM,
        reason: "it must be a folder of user \(geteuid()), and no other user may write to it")
    }
    while true {
      let path = parent + "/\(getpid())-" + hexadecimal(environment.random(), digits: 8)
      let opened = try CacheFolder(scratch: path, files: system)
      var file: Int32 = -1
      do throws(FileError) {
        file = try system.createFile(Self.lockName, in: opened.descriptor)
        // A process that starts between the two calls may have taken the folder for that of a dead process and removed
        // it.
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

  /// Closes the folder and removes it, unless it has files to keep. A later process removes those.
  ///
  /// - Parameter isKept: whether to keep the file at a path below the folder.
  func close(keeping isKept: (String) -> Bool = { _ in false }) {
    if let folder { removeWhole(folder.path, keeping: isKept) }
    if lock >= 0 { closeFile(lock) }
    lock = -1
    folder = nil
  }

  /// Removes the folders of dead processes.
  ///
  /// - Parameter isOfUse: whether a host may still use a file in the folder at this path.
  /// - Returns: whether a folder was kept for that reason.
  func removeDead(sparing isOfUse: (String) -> Bool = { _ in false }) -> Bool {
    let system = environment.files
    var hasSpared = false
    for name in (try? system.list(parent)) ?? [] {
      let path = parent + "/" + name
      if path == folder?.path { continue }
      guard let status = try? system.status(path, follow: false), status.st_mode & S_IFMT == S_IFDIR else { continue }
      guard let lock = try? system.openFile(path + "/" + Self.lockName) else {
        // The process died before it created the lock file or after it removed it, or the folder was just created. A
        // cleaner of temporary directories may also have removed the lock file and left the other files.
        let age = environment.now() - status.modificationSecond
        if age >= Self.minAgeWithoutLock, !Self.mayLive(name), !isOfUse(path) {
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

  /// Whether a process with the ID at the start of the folder's name exists.
  private static func mayLive(_ name: String) -> Bool {
    guard let process = name.split(separator: "-").first.flatMap({ pid_t($0) }), process > 0 else { return false }
    return kill(process, 0) == 0 || errno != ESRCH
  }

  /// Removes a folder with its files and subfolders of files, the lock file last.
  private func removeWhole(_ path: String, keeping isKept: (String) -> Bool = { _ in false }) {
    let system = environment.files
    var isEmpty = true
    for name in (try? system.list(path)) ?? [] where name != Self.lockName {
      let entry = path + "/" + name
      if (try? system.remove(entry)) != nil { continue }
      for file in (try? system.list(entry)) ?? [] {
        if isKept("\(name)/\(file)") { isEmpty = false } else { try? system.remove(entry + "/" + file) }
      }
      try? system.removeDirectory(entry)
    }
    guard isEmpty else { return }
    try? system.remove(path + "/" + Self.lockName)
    try? system.removeDirectory(path)
  }
}
