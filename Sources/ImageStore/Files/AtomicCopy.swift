internal import Threads

#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// Where the content of a copy comes from.
public enum CopySource: Sendable {
  case bytes([UInt8])
  /// An absolute path.
  case file(String)
}

/// Writes a copy of an image to a place that the host chose: complete or not at all.
///
/// The bytes go to a temporary file in the same folder, which is then renamed over the target. Where the system can do
/// that, the file has no name until it is complete, so that a killed process leaves nothing. The mode follows the
/// umask. A target that is there and no regular file (a device, a pipe) is refused: it would be replaced, not written
/// to. A link is followed to the regular file that it leads to (`SaveTarget`), and stays.
/// If something else takes the target's name meanwhile, that is replaced.
/// Blocks; call it on a thread that may. Throws `diskFull` or `io`, with what was wrong in the message.
public func save(
  copyOf source: CopySource, to target: String, environment: StoreEnvironment = .system
) throws(StoreError) {
  guard target.hasPrefix("/"), !target.hasSuffix("/"), !target.utf8.contains(0) else {
    throw StoreError(.io, "cannot write \(target): it must be the absolute path of a file")
  }
  let files = environment.files
  // The target may be on a slow disk.
  WakeupCoalescer.release()
  let place = try SaveTarget.resolve(target, files)
  let temporary = ".imageworker-" + hexadecimal(environment.random(), digits: 16) + ".tmp"
  do throws(FileError) {
    let unnamed = files.createUnnamed(in: place.folder, mode: 0o666)
    let file = if let unnamed { unnamed } else { try files.createFile(temporary, in: place.folder, mode: 0o666) }
    defer { close(file) }
    do throws(FileError) {
      try fill(file, target, from: source, files)
      if unnamed != nil { try files.name(file, temporary, in: place.folder) }
      try files.rename(temporary, to: place.name, in: place.folder)
    } catch {
      try? files.remove(temporary, in: place.folder)
      throw error
    }
  } catch {
    // The names are those in the folder, and of a file that the host does not know.
    let isOfTarget = [.create, .write, .rename].contains(error.operation)
    throw StoreError(isOfTarget ? FileError(operation: error.operation, path: target, code: error.code) : error)
  }
}

private func fill(_ file: Int32, _ target: String, from source: CopySource, _ files: FileSystem) throws(FileError) {
  switch source {
  case .bytes(let bytes):
    let result = bytes.withUnsafeBytes { buffer in
      Result { () throws(FileError) in try files.write(buffer, to: file, target) }
    }
    try result.get()
  case .file(let path):
    let original = try files.openFile(path)
    defer { close(original) }
    try files.forEachPiece(of: original, path) { piece throws(FileError) in
      try files.write(piece, to: file, target)
    }
  }
}
