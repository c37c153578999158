internal import Platform

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
