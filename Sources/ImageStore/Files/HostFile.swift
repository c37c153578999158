internal import Platform

/// A file of the host that is to be copied into the cache. The file is not changed.
public final class HostFile {
  public let byteCount: Int64
  private let path: String
  private let descriptor: Int32
  private let files: FileSystem

  /// Opens a regular file. Refuses files that can block, such as pipes.
  public init(_ path: String, environment: StoreEnvironment = .system) throws(StoreError) {
    self.path = path
    files = environment.files
    let status: stat
    do throws(FileError) {
      // Open without blocking, then check the open file itself.
      let file = try files.openFile(path)
      do throws(FileError) {
        status = try files.status(of: file, path)
      } catch {
        closeFile(file)
        throw error
      }
      descriptor = file
    } catch {
      throw StoreError(error)
    }
    byteCount = Int64(status.st_size)
    guard status.st_mode & S_IFMT == S_IFREG else { throw StoreError(.io, "\(path) must be a regular file") }
  }

  deinit { close(descriptor) }

  /// Reads up to `count` bytes from `offset`; fewer only at the end of the file.
  public func read(at offset: Int64, count: Int) throws(StoreError) -> [UInt8] {
    try readBytes(count, at: offset, from: descriptor, path, files)
  }
}

/// Removes a file that the worker has created, if it exists.
public func remove(fileAt path: String, environment: StoreEnvironment = .system) {
  try? environment.files.remove(path)
}
