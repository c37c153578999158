internal import Platform

/// A resolved target path: an open folder, and a name in it that belongs to a regular file or to nothing.
///
/// Symbolic links are followed, so that the regular file at their end is replaced and not the link. The folder is open,
/// so a later change of the path has no effect.
final class SaveTarget {
  let folder: Int32
  let name: String

  /// The maximum number of links to follow, as in Linux.
  private static let maxLinks = 40

  /// The reason why a path is not a valid target.
  private struct Refusal: Error {
    var reason: String

    static let notRegular = Refusal(reason: "it must be a regular file")
    static let inSystem = Refusal(reason: "it must not be in /proc or /dev")
    static let broken = Refusal(reason: "it is a broken link")
    static func failed(_ code: Int32) -> Refusal { Refusal(reason: String(cString: strerror(code))) }
  }

  /// - Parameter path: absolute.
  ///
  /// Throws `io` with the path and the reason if it is a dangling link, a folder, a device, a pipe, a socket, or a path
  /// in /proc or /dev, where names stand for devices and open files.
  static func resolve(_ path: String, _ files: FileSystem) throws(StoreError) -> SaveTarget {
    do throws(Refusal) {
      var target = try SaveTarget(path, in: FileSystem.workingDirectory, files)
      var links = 0
      while let destination = try target.destination(files, isLinked: links > 0) {
        links += 1
        guard links <= maxLinks else { throw .failed(ELOOP) }
        target = try SaveTarget(destination, in: target.folder, files)
      }
      return target
    } catch {
      throw StoreError(.io, "cannot write \(path): \(error.reason)")
    }
  }

  private init(_ path: String, in directory: Int32, _ files: FileSystem) throws(Refusal) {
    let nameStart = path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.startIndex
    name = String(path[nameStart...])
    guard !["", ".", ".."].contains(name) else { throw .notRegular }
    let parent = nameStart == path.startIndex ? "." : String(path[..<nameStart])
    do throws(FileError) {
      folder = try files.openDirectory(parent, in: directory)
    } catch {
      throw .failed(error.code)
    }
  }

  deinit { close(folder) }

  /// The destination if the name belongs to a symbolic link; nil if it belongs to a regular file or to nothing.
  private func destination(_ files: FileSystem, isLinked: Bool) throws(Refusal) -> String? {
    if isInSystemFolder(files) { throw .inSystem }
    do throws(FileError) {
      let kind = try files.status(name, in: folder, follow: false).st_mode & S_IFMT
      if kind == S_IFLNK { return try files.destination(ofLink: name, in: folder) }
      if kind == S_IFREG { return nil }
    } catch {
      if error.code != ENOENT { throw .failed(error.code) }
      if isLinked { throw .broken }
      return nil
    }
    throw .notRegular
  }

  /// Whether the folder is on the file system of /proc or /dev.
  private func isInSystemFolder(_ files: FileSystem) -> Bool {
    guard let status = try? files.status(of: folder, name), let root = try? files.status("/") else { return false }
    return ["/proc", "/dev"].contains { path in
      guard let systemFolder = try? files.status(path), systemFolder.st_dev == status.st_dev else { return false }
      // If /proc or /dev is not a mount point, as in a plain chroot, only that directory itself is excluded.
      return systemFolder.st_dev != root.st_dev || systemFolder.st_ino == status.st_ino
    }
  }
}
