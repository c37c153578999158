internal import Platform

/// `close`, for types that have a method of that name.
func closeFile(_ descriptor: Int32) { close(descriptor) }

extension FileSystem {
  /// Sets the modification time, ignoring errors: only the sweep after a dead process uses it.
  func setModificationTime(of path: String, in directory: Int32, to seconds: Int) {
    let time = timespec(tv_sec: seconds, tv_nsec: 0)
    utimensat(directory, path, [time, time], 0)
  }

  /// Creates an unnamed file, which is deleted when its descriptor is closed unless `name` gives it a name. Nil if the
  /// system does not support that.
  func createUnnamed(in folder: Int32, mode: mode_t) -> Int32? {
    guard let unnamedFileFlags, exists("/proc/self/fd") else { return nil }
    return try? perform(.create, ".") { openat(folder, ".", unnamedFileFlags, mode) }
  }

  /// Gives an unnamed file a name.
  func name(_ file: Int32, _ name: String, in folder: Int32) throws(FileError) {
    try perform(.create, name) { linkat(AT_FDCWD, "/proc/self/fd/\(file)", folder, name, AT_SYMLINK_FOLLOW) }
  }

  /// The destination of a symbolic link.
  func destination(ofLink name: String, in folder: Int32) throws(FileError) -> String {
    var bytes = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let count = try perform(.read, name) {
      bytes.withUnsafeMutableBytes { Int32(readlinkat(folder, name, $0.baseAddress!, $0.count)) }
    }
    return String(decoding: bytes.prefix(Int(count)), as: UTF8.self)
  }

  func openOrCreate(_ path: String, in directory: Int32) throws(FileError) -> Int32 {
    try perform(.create, path) { openat(directory, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600) }
  }

  func openForUpdating(_ path: String, in directory: Int32) throws(FileError) -> Int32 {
    try perform(.open, path) { openat(directory, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW) }
  }

  /// Creates a hard link. Throws EEXIST if `new` exists.
  func link(_ path: String, to new: String, in directory: Int32) throws(FileError) {
    try perform(.create, new) { linkat(directory, path, directory, new, 0) }
  }
}

extension stat {
  var byteCount: Int64 { Int64(st_size) }

  /// Unix seconds.
  var modificationSecond: Int { Int(modificationTime.tv_sec) }
}
