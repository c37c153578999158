internal import Platform
internal import Text
internal import Threads

/// The source of a copy.
public enum CopySource: Sendable {
  case bytes([UInt8])
  /// An absolute path.
  case file(String)
}

/// Writes a copy of an image to a path that the host chose: completely or not at all.
///
/// Writes a temporary file in the same folder and renames it to the target. If the system supports it, the temporary
/// file has no name until it is complete, so that a killed process leaves nothing. The mode follows the umask. An
/// existing target must be a regular file: a device or pipe would be replaced, not written to. A symbolic link stays,
/// and the regular file that it leads to is replaced (`SaveTarget`). A file that takes the target's name meanwhile is
/// replaced.
///
/// Blocks; must be called on a thread that may block. Throws `diskFull` or `io`; the message names the cause.
///
/// - Parameter mode: the permissions of the file, whatever the umask is; nil for 0666 without those of the umask.
public func save(
  copyOf source: CopySource, to target: String, mode: UInt16? = nil, environment: StoreEnvironment = .system
) throws(StoreError) {
  guard target.hasPrefix("/"), !target.hasSuffix("/"), !target.utf8.contains(0) else {
    throw StoreError(.io, "cannot write \(target): it must be the absolute path of a file")
  }
  let files = environment.files
  // Wake the other threads first: the target may be on a slow disk.
  WakeupCoalescer.release()
  let destination = try SaveTarget.resolve(target, files)
  let temporary = ".imageworker-" + hexadecimal(environment.random(), digits: 16) + ".tmp"
  do throws(FileError) {
    let unnamed = files.createUnnamed(in: destination.folder, mode: 0o666)
    let file = if let unnamed { unnamed } else { try files.createFile(temporary, in: destination.folder, mode: 0o666) }
    defer { close(file) }
    do throws(FileError) {
      try fill(file, target, from: source, files)
      if let mode { fchmod(file, mode_t(mode)) }
      if unnamed != nil { try files.name(file, temporary, in: destination.folder) }
      try files.rename(temporary, to: destination.name, in: destination.folder)
    } catch {
      try? files.remove(temporary, in: destination.folder)
      throw error
    }
  } catch {
    // The error names the temporary file; the host knows only the target.
    let concernsTarget = [.create, .write, .rename].contains(error.operation)
    throw StoreError(concernsTarget ? FileError(operation: error.operation, path: target, code: error.code) : error)
  }
}

private func fill(_ file: Int32, _ target: String, from source: CopySource, _ files: FileSystem) throws(FileError) {
  switch source {
  case .bytes(let bytes): try files.write(bytes, to: file, target)
  case .file(let path):
    let original = try files.openFile(path)
    defer { close(original) }
    try files.forEachPiece(of: original, path) { piece throws(FileError) in
      try files.write(piece, to: file, target)
    }
  }
}
