#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// A file of the host's that is to be copied into the cache. It stays as it is.
public final class HostFile {
  public let byteCount: Int64
  private let path: String
  private let descriptor: Int32
  private let files: FileSystem

  /// Opens a regular file: one that can block, such as a pipe, is refused.
  public init(_ path: String, environment: StoreEnvironment = .system) throws(StoreError) {
    self.path = path
    files = environment.files
    let status: stat
    do throws(FileError) {
      // It is opened without waiting; what is looked at is what has been opened.
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

  /// Up to `count` bytes from `offset`; fewer at the end.
  public func read(at offset: Int64, count: Int) throws(StoreError) -> [UInt8] {
    try readBytes(count, at: offset, from: descriptor, path, files)
  }
}

/// Removes a file that the worker itself has made, if it is there.
public func remove(fileAt path: String, environment: StoreEnvironment = .system) {
  try? environment.files.remove(path)
}
