#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// A system call on a file that failed.
struct FileError: Error {
  var operation: FileSystem.Operation
  var path: String
  var code: Int32

  var isOutOfSpace: Bool { code == ENOSPC || code == EDQUOT }
  /// Whether the process or the system has no descriptor left, which passes.
  var isOutOfDescriptors: Bool { code == EMFILE || code == ENFILE }
  var isMissing: Bool { code == ENOENT || code == ENOTDIR }

  /// Whether nothing else could be written either: the folder, not the one file, is at fault.
  var concernsFolder: Bool {
    isOutOfSpace || code == EROFS || code == EACCES || code == EPERM || code == EIO || code == ENOTDIR
  }

  var message: String { "cannot \(operation.rawValue) \(path): \(String(cString: strerror(code)))" }
}
