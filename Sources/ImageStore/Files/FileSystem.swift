#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// The system calls that the store makes, each of which a test can make fail.
///
/// Paths are relative to an open directory wherever there is one, so that a directory moved meanwhile stays the same.
public struct FileSystem: Sendable {
  public enum Operation: String, Sendable {
    case makeDirectory = "create the directory"
    case create = "create"
    case open = "open"
    case write = "write"
    case read = "read"
    case status = "read the status of"
    case rename = "rename"
    case remove = "remove"
    case list = "list"
    case lock = "lock"
    case freeSpace = "measure the free space of"
    case index = "use the index"
  }

  /// Asked before each operation; a returned `errno` makes it fail without being carried out.
  public var fault: (@Sendable (Operation) -> Int32?)?

  /// Free and total bytes to believe in, instead of asking the system.
  public var pretendedSpace: (@Sendable () -> (free: Int64, total: Int64))?

  public init(fault: (@Sendable (Operation) -> Int32?)? = nil) { self.fault = fault }

  static let workingDirectory = AT_FDCWD

  func createFile(_ path: String, in directory: Int32 = workingDirectory, mode: mode_t = 0o600) throws(FileError)
    -> Int32
  {
    try perform(.create, path) { openat(directory, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode) }
  }

  /// Does not wait for a writer, where a pipe has taken the file's place.
  func openFile(_ path: String, in directory: Int32 = workingDirectory) throws(FileError) -> Int32 {
    try perform(.open, path) { openat(directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) }
  }

  func openForAppending(_ path: String, in directory: Int32) throws(FileError) -> Int32 {
    try perform(.open, path) { openat(directory, path, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW) }
  }

  func exists(_ path: String) -> Bool { (try? status(path)) != nil }

  func openDirectory(_ path: String, in directory: Int32 = workingDirectory) throws(FileError) -> Int32 {
    try perform(.open, path) { openat(directory, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
  }

  func makeDirectory(_ path: String, in directory: Int32 = workingDirectory) throws(FileError) {
    try perform(.makeDirectory, path) { mkdirat(directory, path, 0o700) }
  }

  /// Makes `path` and what is missing above it, for the owner only. What exists stays as it is.
  func makeDirectories(_ path: String) throws(FileError) {
    do throws(FileError) {
      try makeDirectory(path)
    } catch {
      if error.code == EEXIST { return }
      guard error.code == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else { throw error }
      try makeDirectories(String(path[..<slash]))
      do throws(FileError) {
        try makeDirectory(path)
      } catch {
        if error.code != EEXIST { throw error }
      }
    }
  }

  func rename(_ old: String, to new: String, in directory: Int32 = workingDirectory) throws(FileError) {
    try perform(.rename, new) { renameat(directory, old, directory, new) }
  }

  func remove(_ path: String, in directory: Int32 = workingDirectory) throws(FileError) {
    try perform(.remove, path) { unlinkat(directory, path, 0) }
  }

  func removeDirectory(_ path: String, in directory: Int32 = workingDirectory) throws(FileError) {
    try perform(.remove, path) { unlinkat(directory, path, AT_REMOVEDIR) }
  }

  /// - Parameter follow: whether a symbolic link is looked through.
  func status(_ path: String, in directory: Int32 = workingDirectory, follow: Bool = true) throws(FileError) -> stat {
    var result = stat()
    // Each hit asks. Passed as it is, a string would be copied for C.
    try perform(.status, path) {
      path.withCString { fstatat(directory, $0, &result, follow ? 0 : AT_SYMLINK_NOFOLLOW) }
    }
    return result
  }

  func status(of file: Int32, _ path: String) throws(FileError) -> stat {
    var result = stat()
    try perform(.status, path) { fstat(file, &result) }
    return result
  }

  /// Takes the lock on the whole file for this descriptor, without waiting. False when another holds it.
  func lock(_ file: Int32, _ path: String) throws(FileError) -> Bool {
    do throws(FileError) {
      try perform(.lock, path) { flock(file, LOCK_EX | LOCK_NB) }
      return true
    } catch {
      if error.code == EWOULDBLOCK { return false }
      throw error
    }
  }

  /// Free bytes for this user, bytes in all, and the unit in which files grow.
  func space(of directory: Int32) throws(FileError) -> (free: Int64, total: Int64, block: Int64) {
    var result = statvfs()
    try perform(.freeSpace, "the cache directory") { fstatvfs(directory, &result) }
    let unit = Int64(result.f_frsize)
    if let pretended = pretendedSpace?() { return (pretended.free, pretended.total, max(unit, 512)) }
    return (Int64(result.f_bavail) * unit, Int64(result.f_blocks) * unit, max(unit, 512))
  }

  @discardableResult
  func perform(_ operation: Operation, _ path: String, _ call: () -> Int32) throws(FileError) -> Int32 {
    if let code = fault?(operation) { throw FileError(operation: operation, path: path, code: code) }
    while true {
      let result = call()
      if result >= 0 { return result }
      if errno != EINTR { throw FileError(operation: operation, path: path, code: errno) }
    }
  }
}
