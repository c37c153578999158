internal import Platform

/// A failed system call on a file.
struct FileError: Error {
  var operation: FileSystem.Operation
  var path: String
  var code: Int32

  var isOutOfSpace: Bool { code == ENOSPC || code == EDQUOT }
  /// Whether the process or the system is out of file descriptors, which is temporary.
  var isOutOfDescriptors: Bool { code == EMFILE || code == ENFILE }
  var isMissing: Bool { code == ENOENT || code == ENOTDIR }

  /// Whether other files could not be written either: the folder is at fault, not the one file.
  var concernsFolder: Bool {
    isOutOfSpace || code == EROFS || code == EACCES || code == EPERM || code == EIO || code == ENOTDIR
  }

  var message: String { "cannot \(operation.rawValue) \(path): \(String(cString: strerror(code)))" }
}
