internal import Platform
internal import Threads

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
