internal import CSystem
internal import Platform

/// Where a file of the host is, and where it must be.
public struct HostPlace: Sendable, Hashable {
  public enum Name: Sendable, Hashable {
    /// An absolute path.
    case path(String)
    /// A path below a folder. It may come from a stranger: it leads nowhere else, and through no link.
    case beneath(String, folder: String)
    /// An open file of a process.
    case descriptor(Int32, process: Int32)
  }

  public var name: Name
  /// The folder below which the file must be, without links on the way; nil for any place.
  public var permitted: String?

  /// The process that started the worker.
  public static var host: Int32 { getppid() }

  public init(_ name: Name, permitted: String? = nil) { (self.name, self.permitted) = (name, permitted) }

  /// The path in messages.
  var path: String {
    switch name {
    case .path(let path): path
    case .beneath(let path, let folder): "\(folder)/\(path)"
    case .descriptor(let number, let process): "/proc/\(process)/fd/\(number)"
    }
  }
}

/// A file of the host that is to be copied. The file is not changed.
public final class HostFile {
  public let byteCount: Int64
  private let path: String
  private let descriptor: Int32
  private let files: FileSystem
  private let status: stat

  public convenience init(_ path: String, environment: StoreEnvironment = .system) throws(StoreError) {
    try self.init(HostPlace(.path(path)), environment: environment)
  }

  /// Opens a regular file. Another kind of file, such as a pipe, is refused without being opened.
  ///
  /// Throws `outside` for a file that is not where it must be, and `io`.
  public init(_ place: HostPlace, environment: StoreEnvironment = .system) throws(StoreError) {
    (path, files) = (place.path, environment.files)
    let found = try Self.find(place, files)
    defer { close(found) }
    do throws(FileError) {
      let path = path
      let file = csystem_open_found(found)
      guard file != -2 else { throw FileError(operation: .open, path: path, code: 0) }
      descriptor = try files.perform(.open, path) { file }
      do throws(FileError) {
        status = try files.status(of: descriptor, path)
      } catch {
        close(descriptor)
        throw error
      }
    } catch {
      throw error.code == 0 ? StoreError(.io, "\(path) must be a regular file") : StoreError(error)
    }
    byteCount = Int64(status.st_size)
  }

  deinit { close(descriptor) }

  /// Reads up to `count` bytes from `offset`; fewer only at the end of the file.
  public func read(at offset: Int64, count: Int) throws(StoreError) -> [UInt8] {
    try readBytes(count, at: offset, from: descriptor, path, files)
  }

  /// Throws if the file has been written to since it was opened, so that what was read may be of two versions.
  public func checkUnchanged() throws(StoreError) {
    let now: stat
    do throws(FileError) { now = try files.status(of: descriptor, path) } catch { throw StoreError(error) }
    let (old, new) = (status.st_mtim, now.st_mtim)
    guard now.st_size == status.st_size, old.tv_sec == new.tv_sec, old.tv_nsec == new.tv_nsec else {
      throw StoreError(.changed, "\(path) changed while it was read")
    }
  }

  private static func find(_ place: HostPlace, _ files: FileSystem) throws(StoreError) -> Int32 {
    switch (place.name, place.permitted) {
    case (.descriptor(_, let process), _?) where process != getppid():
      throw StoreError(.outside, "with --files, a descriptor must be one of the process that started the worker")
    case (.descriptor, _), (.path, nil):
      do throws(FileError) { return try files.perform(.open, place.path) { csystem_find(place.path) } } catch {
        throw StoreError(error)
      }
    case (.path(let path), let permitted?):
      return try find(try relative(path, to: permitted), below: permitted, files)
    case (.beneath(let path, let folder), nil): return try find(path, below: folder, files)
    case (.beneath(let path, let folder), let permitted?):
      let inner = try relative(folder, to: permitted)
      if inner.isEmpty { return try find(path, below: permitted, files) }
      let found = try find(inner, below: permitted, files)
      defer { close(found) }
      return try find(path, in: found, called: folder, files)
    }
  }

  private static func find(_ path: String, below folder: String, _ files: FileSystem) throws(StoreError) -> Int32 {
    let directory: Int32
    do throws(FileError) { directory = try files.openDirectory(folder) } catch { throw StoreError(error) }
    defer { close(directory) }
    return try find(path, in: directory, called: folder, files)
  }

  private static func find(
    _ path: String, in directory: Int32, called folder: String, _ files: FileSystem
  ) throws(StoreError) -> Int32 {
    do throws(FileError) {
      return try files.perform(.open, "\(folder)/\(path)") { csystem_find_beneath(directory, path) }
    } catch {
      // The kernel says so of a path that leads out, and of a link.
      guard error.code == EXDEV || error.code == ELOOP else { throw StoreError(error) }
      throw StoreError(.outside, "\(path) must be a path below \(folder) without links")
    }
  }

  /// The part of an absolute path below a folder; empty for the folder itself.
  private static func relative(_ path: String, to folder: String) throws(StoreError) -> String {
    let folder = folder.hasSuffix("/") ? folder : folder + "/"
    if path + "/" == folder { return "" }
    guard path.hasPrefix(folder) else { throw StoreError(.outside, "\(path) must be below \(folder)") }
    return String(path.dropFirst(folder.utf8.count))
  }
}

/// Removes a file that the worker has created, if it exists.
public func remove(fileAt path: String, environment: StoreEnvironment = .system) {
  try? environment.files.remove(path)
}
