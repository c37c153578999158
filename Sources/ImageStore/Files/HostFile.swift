internal import CSystem
internal import HTTPTypes
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
  public var permitted: PermittedFolder?
  /// The version that the file must have; nil for any.
  public var version: FileVersion?

  /// The process that started the worker.
  public static var host: Int32 { getppid() }

  public init(_ name: Name, permitted: PermittedFolder? = nil) { (self.name, self.permitted) = (name, permitted) }

  /// The path in messages.
  var path: String {
    switch name {
    case .path(let path): path
    case .beneath(let path, let folder): "\(folder)/\(path)"
    case .descriptor(let number, let process): "/proc/\(process)/fd/\(number)"
    }
  }

  /// The `file:` URL of the path, without empty parts and dots.
  public var url: String { FileURL.url(ofPath: PermittedFolder.simplified(path)) }

  /// The place with the version that its file has now. Blocks.
  public func identified(environment: StoreEnvironment = .system) throws(StoreError) -> HostPlace {
    var place = self
    place.version = try HostFile(self, environment: environment).version
    return place
  }
}

/// A folder below which files of the host must be.
public struct PermittedFolder: Sendable, Hashable {
  /// The path, as it was given and without links.
  private let given: String
  let path: String

  /// Throws `io` if there is no such folder.
  ///
  /// - Parameter given: an absolute path.
  public init(_ given: String, environment: StoreEnvironment = .system) throws(StoreError) {
    guard let real = realpath(given, nil) else {
      throw StoreError(FileError(operation: .open, path: given, code: errno))
    }
    defer { free(real) }
    (self.given, path) = (Self.simplified(given), String(cString: real))
    do throws(FileError) { close(try environment.files.openDirectory(path)) } catch { throw StoreError(error) }
  }

  /// The part of an absolute path below the folder; empty for the folder itself.
  func relative(_ path: String) throws(StoreError) -> String {
    let simple = Self.simplified(path)
    for folder in [given, self.path] {
      if simple == folder { return "" }
      let prefix = folder == "/" ? folder : folder + "/"
      if simple.utf8.starts(with: prefix.utf8) { return String(simple.dropFirst(prefix.count)) }
    }
    throw StoreError(.outside, "\(path) must be below \(given)")
  }

  /// A path without empty parts and dots.
  fileprivate static func simplified(_ path: String) -> String {
    "/" + path.split(separator: "/").filter { $0 != "." }.joined(separator: "/")
  }
}

/// A file of the host that is to be copied. The file is not changed.
public final class HostFile {
  public let byteCount: Int64
  private let path: String
  private let descriptor: Int32
  private let files: FileSystem
  private let status: stat
  /// Whether what is read must be of the version of `HostPlace.version`, whose tag has more than the size and a time.
  private let hasVersion: Bool

  public convenience init(_ path: String, environment: StoreEnvironment = .system) throws(StoreError) {
    try self.init(HostPlace(.path(path)), environment: environment)
  }

  /// Opens a regular file. Another kind of file, such as a pipe, is refused without being opened.
  ///
  /// Throws `outside` for a file that is not where it must be, `changed` for one of another version, and `io`.
  public init(_ place: HostPlace, environment: StoreEnvironment = .system) throws(StoreError) {
    (path, files, hasVersion) = (place.path, environment.files, place.version != nil)
    let found = try Self.open(place, CSYSTEM_FIND, files)
    defer { close(found) }
    do throws(FileError) {
      status = try files.status(of: found, path)
    } catch {
      throw StoreError(error)
    }
    guard status.st_mode & S_IFMT == S_IFREG else { throw StoreError(.io, "\(path) must be a regular file") }
    descriptor = try Self.openForReading(found, status, place, files)
    byteCount = Int64(status.st_size)
    if let version = place.version, version.tag != self.version.tag {
      throw StoreError(.changed, "\(path) changed before it was read")
    }
  }

  /// The version that was opened.
  var version: FileVersion {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return FileVersion(status, now: Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec))
  }

  deinit { close(descriptor) }

  /// Reads up to `count` bytes from `offset`; fewer only at the end of the file.
  ///
  /// - Parameter isWanted: asked from time to time. Throws when it returns false.
  public func read(
    at offset: Int64, count: Int, while isWanted: () -> Bool = { true }
  ) throws(StoreError) -> [UInt8] {
    let bytes = try readBytes(count, at: offset, from: descriptor, path, files, while: isWanted)
    guard isWanted() else { throw StoreError(.io, "no load waits for \(path)") }
    return bytes
  }

  /// Throws if the file has been written to since it was opened, so that what was read may be of two versions.
  public func checkUnchanged() throws(StoreError) {
    let now: stat
    do throws(FileError) { now = try files.status(of: descriptor, path) } catch { throw StoreError(error) }
    let (old, new) = (status.st_mtim, now.st_mtim)
    let isSame = now.st_size == status.st_size && old.tv_sec == new.tv_sec && old.tv_nsec == new.tv_nsec
    guard isSame, !hasVersion || FileVersion(now, now: 0).tag == FileVersion(status, now: 0).tag else {
      throw StoreError(.changed, "\(path) changed while it was read")
    }
  }

  private static func openForReading(
    _ found: Int32, _ status: stat, _ place: HostPlace, _ files: FileSystem
  ) throws(StoreError) -> Int32 {
    let descriptor = csystem_open_found(found)
    if descriptor >= 0 { return descriptor }
    // /proc may not be mounted.
    let again = try open(place, CSYSTEM_READ, files)
    let now = try? files.status(of: again, place.path)
    if let now, now.st_dev == status.st_dev, now.st_ino == status.st_ino { return again }
    close(again)
    throw StoreError(.changed, "\(place.path) was replaced while it was opened")
  }

  private static func open(
    _ place: HostPlace, _ access: csystem_access, _ files: FileSystem
  ) throws(StoreError) -> Int32 {
    switch (place.name, place.permitted) {
    case (.descriptor(_, let process), _?) where process != getppid():
      throw StoreError(.outside, "with --files, a descriptor must be one of the process that started the worker")
    case (.descriptor, _), (.path, nil):
      do throws(FileError) { return try files.perform(.open, place.path) { csystem_open(place.path, access) } } catch {
        throw StoreError(error)
      }
    case (.path(let path), let permitted?):
      let inner = try permitted.relative(path)
      return try open(inner.isEmpty ? "." : inner, access, below: permitted.path, files)
    case (.beneath(let path, let folder), nil): return try open(path, access, below: folder, files)
    case (.beneath(let path, let folder), let permitted?):
      let inner = try permitted.relative(folder)
      if inner.isEmpty { return try open(path, access, below: permitted.path, files) }
      let found = try open(inner, CSYSTEM_FIND, below: permitted.path, files)
      defer { close(found) }
      return try open(path, access, in: found, called: folder, files)
    }
  }

  private static func open(
    _ path: String, _ access: csystem_access, below folder: String, _ files: FileSystem
  ) throws(StoreError) -> Int32 {
    let directory: Int32
    do throws(FileError) { directory = try files.openDirectory(folder) } catch { throw StoreError(error) }
    defer { close(directory) }
    return try open(path, access, in: directory, called: folder, files)
  }

  private static func open(
    _ path: String, _ access: csystem_access, in directory: Int32, called folder: String, _ files: FileSystem
  ) throws(StoreError) -> Int32 {
    do throws(FileError) {
      return try files.perform(.open, "\(folder)/\(path)") { csystem_open_beneath(directory, path, access) }
    } catch {
      // The kernel says so of a path that leads out, and of a link.
      guard error.code == EXDEV || error.code == ELOOP else { throw StoreError(error) }
      throw StoreError(.outside, "\(path) must be a path below \(folder) without links")
    }
  }
}

/// Removes a file that the worker has created, if it exists.
public func remove(fileAt path: String, environment: StoreEnvironment = .system) {
  try? environment.files.remove(path)
}
