internal import Platform

/// The state of an index file as the file system sees it. It changes when the file is replaced, when it is written, and
/// when the first writer comes or the last one goes.
struct IndexStamp: Equatable {
  private var identity: FileIdentity?
  private var byteCount: Int64 = 0
  private var modifiedAt: Int64 = 0
  private var hasLog = false

  init(_ name: String, in folder: CacheFolder) {
    identity = FileIdentity(name, in: folder)
    hasLog = FileIdentity(name + "-wal", in: folder) != nil
    // While there is a log, SQLite's locks protect the reader, and checkpoints write the file all the time.
    guard !hasLog, let status = try? folder.files.status(name, in: folder.descriptor) else { return }
    byteCount = Int64(status.st_size)
    modifiedAt = Int64(status.modificationTime.tv_sec) * 1_000_000_000 + Int64(status.modificationTime.tv_nsec)
  }
}
