internal import Platform

/// The system calls of the store, each of which a test can make fail.
///
/// Paths are relative to an open directory wherever possible, so that they keep their meaning when the directory is
/// moved.
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

  /// Called before each operation. If it returns an `errno`, the operation fails without being executed.
  public var fault: (@Sendable (Operation) -> Int32?)?

  /// Free and total bytes for tests, used instead of the system's values.
  public var pretendedSpace: (@Sendable () -> (free: Int64, total: Int64))?

  public init(fault: (@Sendable (Operation) -> Int32?)? = nil) { self.fault = fault }

  static let workingDirectory = AT_FDCWD

  func createFile(_ path: String, in directory: Int32 = workingDirectory, mode: mode_t = 0o600) throws(FileError)
    -> Int32
  {
    try perform(.create, path) { openat(directory, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode) }
  }

  /// Does not block if a pipe has replaced the file.
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

  func makeDirectoryIfMissing(_ path: String, in directory: Int32 = workingDirectory) throws(FileError) {
    do throws(FileError) {
      try makeDirectory(path, in: directory)
    } catch {
      if error.code != EEXIST { throw error }
    }
  }

  /// Creates `path` and its missing parents, for the owner only. Existing directories are unchanged.
  func makeDirectories(_ path: String) throws(FileError) {
    do throws(FileError) {
      try makeDirectoryIfMissing(path)
    } catch {
      guard error.code == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else { throw error }
      try makeDirectories(String(path[..<slash]))
      try makeDirectoryIfMissing(path)
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

  /// - Parameter follow: whether a symbolic link is followed.
  func status(_ path: String, in directory: Int32 = workingDirectory, follow: Bool = true) throws(FileError) -> stat {
    var result = stat()
    // `withCString`, since each cache hit calls this: an implicit conversion would copy the string.
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

  /// Locks the whole file for this descriptor, without waiting. Returns false if it is locked already.
  func lock(_ file: Int32, _ path: String) throws(FileError) -> Bool {
    do throws(FileError) {
      try perform(.lock, path) { flock(file, LOCK_EX | LOCK_NB) }
      return true
    } catch {
      if error.code == EWOULDBLOCK { return false }
      throw error
    }
  }

  /// The free bytes for this user, the total bytes, and the block size.
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
    let result = retryingOnInterrupt(call)
    if result < 0 { throw FileError(operation: operation, path: path, code: errno) }
    return result
  }
}

/// A failed system call on a file.
struct FileError: Error {
  var operation: FileSystem.Operation
  var path: String
  var code: Int32
  /// The reason in words, if it is not that of the system.
  var reason: String? = nil

  var isOutOfSpace: Bool { code == ENOSPC || code == EDQUOT }
  /// Whether the process or the system is out of file descriptors, which is temporary.
  var isOutOfDescriptors: Bool { code == EMFILE || code == ENFILE }
  var isMissing: Bool { code == ENOENT || code == ENOTDIR }

  /// Whether other files could not be written either: the folder is at fault, not the one file.
  var concernsFolder: Bool {
    isOutOfSpace || code == EROFS || code == EACCES || code == EPERM || code == EIO || code == ENOTDIR
  }

  var message: String { "cannot \(operation.rawValue) \(path): \(reason ?? String(cString: strerror(code)))" }
}

/// The external dependencies of the store, which tests can replace: clock, randomness and file system.
public struct StoreEnvironment: Sendable {
  /// Unix seconds.
  public var now: @Sendable () -> Int
  public var random: @Sendable () -> UInt64
  public var files: FileSystem
  /// An identifier of the current run of the system; nil if the system has none.
  public var boot: @Sendable () -> String? = { nil }

  public static let system = StoreEnvironment(
    now: { time(nil) }, random: { UInt64.random(in: .min ... .max) }, files: FileSystem(),
    boot: {
      let path = "/proc/sys/kernel/random/boot_id"
      let files = FileSystem()
      guard let file = try? files.openFile(path) else { return nil }
      defer { closeFile(file) }
      let text = (try? readBytes(64, at: 0, from: file, path, files)) ?? []
      return text.isEmpty ? nil : String(decoding: text.prefix { $0 > 0x20 }, as: UTF8.self)
    })
}
