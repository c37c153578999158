#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// A place that a host named for a file: an open folder, and a name in it that belongs to a regular file or to nothing.
///
/// A symbolic link is followed, so that the regular file that it leads to is replaced and not the link. The folder is
/// open, so a path that changes later does not lead elsewhere.
final class SaveTarget {
  let folder: Int32
  let name: String

  /// Follows links no more often than Linux does.
  private static let mostLinks = 40

  /// Why a path is no such place, in words.
  private struct Refusal: Error {
    var reason: String

    static let notRegular = Refusal(reason: "it must be a regular file")
    static let inSystem = Refusal(reason: "it must not be in /proc or /dev")
    static let broken = Refusal(reason: "it is a broken link")
    static func failed(_ code: Int32) -> Refusal { Refusal(reason: String(cString: strerror(code))) }
  }

  /// - Parameter path: absolute.
  ///
  /// Throws `io` with the path and what is wrong with it: a link to nothing; a folder, device, pipe or socket; a place
  /// in /proc or /dev, where names stand for devices and open files.
  static func resolve(_ path: String, _ files: FileSystem) throws(StoreError) -> SaveTarget {
    do throws(Refusal) {
      var target = try SaveTarget(path, in: FileSystem.workingDirectory, files)
      var links = 0
      while let destination = try target.destination(files, isLinked: links > 0) {
        links += 1
        guard links <= mostLinks else { throw .failed(ELOOP) }
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

  /// The destination of the link that has the name; nil if a regular file has it, or nothing.
  private func destination(_ files: FileSystem, isLinked: Bool) throws(Refusal) -> String? {
    if isOfSystem(files) { throw .inSystem }
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

  /// Whether the folder is on the file system of processes or of devices.
  private func isOfSystem(_ files: FileSystem) -> Bool {
    guard let own = try? files.status(of: folder, name), let root = try? files.status("/") else { return false }
    return ["/proc", "/dev"].contains { path in
      guard let place = try? files.status(path), place.st_dev == own.st_dev else { return false }
      // Where it is no file system of its own, as in a plain change of the root, its own names are meant.
      return place.st_dev != root.st_dev || place.st_ino == own.st_ino
    }
  }
}
