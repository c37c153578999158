internal import Platform
internal import Text
internal import Threads

/// A file that is written piece by piece and takes its name when it is complete: completely or not at all.
///
/// Writes a temporary file in the same folder and renames it to the target. If the system supports it, the temporary
/// file has no name until it is complete, so that a killed process leaves nothing. An existing target must be a regular
/// file: a device or pipe would be replaced, not written to. A symbolic link stays, and the regular file that it leads
/// to is replaced (`SaveTarget`). A file that takes the target's name meanwhile is replaced.
public final class ReplacementFile {
  private let target: String
  private let files: FileSystem
  private let destination: SaveTarget
  private let descriptor: Int32
  private let temporary: String
  /// Whether `temporary` is the name of a file.
  private var isNamed: Bool

  /// - Parameters:
  ///   - target: an absolute path.
  ///   - mode: the mode, without the bits of the umask.
  ///
  /// Throws `diskFull` or `io`; the message names the cause.
  public init(_ target: String, mode: UInt32, environment: StoreEnvironment = .system) throws(StoreError) {
    guard target.hasPrefix("/"), !target.hasSuffix("/"), !target.utf8.contains(0) else {
      throw StoreError(.io, "cannot write \(target): it must be the absolute path of a file")
    }
    self.target = target
    files = environment.files
    destination = try SaveTarget.resolve(target, files)
    temporary = ".imageworker-" + hexadecimal(environment.random(), digits: 16) + ".tmp"
    do throws(FileError) {
      let unnamed = files.createUnnamed(in: destination.folder, mode: mode_t(mode))
      isNamed = unnamed == nil
      descriptor =
        if let unnamed { unnamed } else { try files.createFile(temporary, in: destination.folder, mode: mode_t(mode)) }
    } catch {
      throw Self.error(error, target)
    }
  }

  deinit {
    close(descriptor)
    if isNamed { try? files.remove(temporary, in: destination.folder) }
  }

  /// Sets the permissions, whatever the umask is.
  public func setMode(_ mode: UInt16) { fchmod(descriptor, mode_t(mode)) }

  public func write(_ bytes: [UInt8]) throws(StoreError) {
    do throws(FileError) {
      try files.write(bytes, to: descriptor, target)
    } catch {
      throw Self.error(error, target)
    }
  }

  /// Copies the whole content of another file.
  func write(contentOf original: Int32, _ path: String) throws(StoreError) {
    do throws(FileError) {
      try files.forEachPiece(of: original, path) { piece throws(FileError) in
        try files.write(piece, to: descriptor, target)
      }
    } catch {
      throw Self.error(error, target)
    }
  }

  /// Whether both take the name of one file, however their paths are spelt.
  public func replacesSameFile(as other: ReplacementFile) -> Bool {
    guard destination.name.utf8.elementsEqual(other.destination.name.utf8),
      let own = try? files.status(of: destination.folder, target),
      let others = try? files.status(of: other.destination.folder, other.target)
    else { return false }
    return own.st_dev == others.st_dev && own.st_ino == others.st_ino
  }

  /// Gives the complete file its name. Nothing may be written afterwards.
  public func commit() throws(StoreError) {
    do throws(FileError) {
      if !isNamed { try files.name(descriptor, temporary, in: destination.folder) }
      isNamed = true
      try files.rename(temporary, to: destination.name, in: destination.folder)
      isNamed = false
    } catch {
      throw Self.error(error, target)
    }
  }

  /// An error of the temporary file must name the target: the caller knows only that.
  private static func error(_ error: FileError, _ target: String) -> StoreError {
    let concernsTarget = [.create, .write, .rename].contains(error.operation)
    return StoreError(concernsTarget ? FileError(operation: error.operation, path: target, code: error.code) : error)
  }
}

public enum CopySource: Sendable {
  case bytes([UInt8])
  /// An absolute path.
  case file(String)
}

/// Writes a copy of an image to a path that the host chose: completely or not at all (`ReplacementFile`). The mode
/// follows the umask.
///
/// Blocks; must be called on a thread that may block. Throws `diskFull` or `io`; the message names the cause.
///
/// - Parameter mode: the permissions of the file, whatever the umask is; nil for 0666 without those of the umask.
public func save(
  copyOf source: CopySource, to target: String, mode: UInt16? = nil, environment: StoreEnvironment = .system
) throws(StoreError) {
  // Wake the other threads first: the target may be on a slow disk.
  WakeupCoalescer.release()
  let copy = try ReplacementFile(target, mode: 0o666, environment: environment)
  if let mode { copy.setMode(mode) }
  switch source {
  case .bytes(let bytes): try copy.write(bytes)
  case .file(let path):
    let original = try StoreError.mapping { () throws(FileError) in try environment.files.openFile(path) }
    defer { close(original) }
    try copy.write(contentOf: original, path)
  }
  try copy.commit()
}
