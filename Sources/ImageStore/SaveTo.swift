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
/// umask. A target that is there and no regular file (a device, a pipe, a link to one) is refused: it would be
/// replaced, not written to.
/// Blocks; call it on a thread that may. Throws `diskFull` or `io`, with what was wrong in the message.
public func save(
  copyOf source: CopySource, to target: String, environment: StoreEnvironment = .system
) throws(StoreError) {
  guard target.hasPrefix("/"), !target.hasSuffix("/"), !target.utf8.contains(0), let slash = target.lastIndex(of: "/")
  else { throw StoreError(.io, "cannot write \(target): it is no absolute path of a file") }
  let files = environment.files
  // The target may be on a slow disk.
  Wakeups.release()
  if let status = try? files.status(target), status.st_mode & S_IFMT != S_IFREG {
    throw StoreError(.io, "cannot write \(target): it is no regular file")
  }
  let folder = target[...slash]
  let temporary = folder + ".imageworker-" + hexadecimal(environment.random(), digits: 16) + ".tmp"
  do throws(FileError) {
    let unnamed = files.createUnnamed(in: String(folder), mode: 0o666)
    let file: Int32
    do throws(FileError) {
      if let unnamed { file = unnamed } else { file = try files.createFile(temporary, mode: 0o666) }
    } catch {
      throw FileError(operation: .create, path: target, code: error.code)
    }
    defer { close(file) }
    do throws(FileError) {
      try fill(file, target, from: source, files)
      if unnamed != nil { try files.name(file, temporary) }
      try files.rename(temporary, to: target)
    } catch {
      try? files.remove(temporary)
      throw error
    }
  } catch {
    throw StoreError(error)
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
