internal import Platform

/// The directory of a new recording, and the one of the session's cache beside it.
///
/// If the directory has a recording already, as after a restart of the worker or beside another worker with the same
/// options, the next free one of `DIR-2`, `DIR-3` and so on is taken.
public struct RecordingDirectory: Sendable {
  private static let maxNumber = 10_000

  public private(set) var path: String
  public var cache: String { path + ".cache" }

  /// Creates both directories, for the owner only. They must be missing or empty.
  ///
  /// - Parameter name: an absolute path.
  public init(creating name: String) throws(RecordingError) {
    path = name
    for number in 1...Self.maxNumber {
      if number > 1 { path = "\(name)-\(number)" }
      guard try isEmptyDirectory(path, creating: true), try isEmptyDirectory(cache, creating: false) else { continue }
      // Of two workers, only one creates it.
      if mkdir(RecordingFiles(directory: path).bodies, 0o700) == 0 {
        if try isEmptyDirectory(cache, creating: true) { return }
      } else if errno != EEXIST {
        throw systemFailure("the directory \(path) cannot be written")
      }
    }
    throw RecordingError("\(name) and \(Self.maxNumber) further directories have recordings")
  }
}

/// Creates a directory for the owner only, unless it exists and is empty.
public func createEmptyDirectory(_ path: String) throws(RecordingError) {
  guard try isEmptyDirectory(path, creating: true) else {
    throw RecordingError("the directory \(path) must be empty or missing")
  }
}

/// Whether a directory is empty, or missing and to be created.
private func isEmptyDirectory(_ path: String, creating: Bool) throws(RecordingError) -> Bool {
  if creating, mkdir(path, 0o700) == 0 { return true }
  guard let stream = opendir(path) else {
    if !creating, errno == ENOENT { return true }
    throw systemFailure("the directory \(path) cannot be used")
  }
  defer { closedir(stream) }
  while let entry = readdir(stream) {
    let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    if name != ".", name != ".." { return false }
  }
  return true
}
