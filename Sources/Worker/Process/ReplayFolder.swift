internal import Platform
internal import Recording

/// The directory of a replay's files.
struct ReplayFolder {
  let root: String
  private let isTemporary: Bool

  var cache: String { root + "/cache" }
  /// The folder that stands for `/` in the paths of the host.
  var host: String { root + "/files" }

  /// Creates the directory.
  ///
  /// - Parameter directory: an absolute path; nil for a temporary directory.
  init(_ directory: String?) throws(StartError) {
    if let directory {
      (root, isTemporary) = (directory, false)
      do throws(RecordingError) {
        try createEmptyDirectory(root)
      } catch {
        throw StartError(message: error.message)
      }
    } else {
      let parent = getenv("TMPDIR").map { String(cString: $0) } ?? ""
      var template = Array(((parent.hasPrefix("/") ? parent : "/tmp") + "/imageworker-replay-XXXXXX").utf8CString)
      guard mkdtemp(&template) != nil else {
        throw StartError(message: "a temporary directory cannot be created: \(String(cString: strerror(errno)))")
      }
      root = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
      isTemporary = true
    }
    mkdir(host, 0o700)
  }

  /// The path of a host's file in the replay, whose folder is created.
  func path(ofHost path: String) throws(RecordingError) -> String {
    let local = host + path
    try createFolders(String(local[..<(local.lastIndex(of: "/") ?? local.startIndex)]))
    return local
  }

  /// Removes a temporary directory with everything in it.
  func remove() {
    if isTemporary { removeTree(root) }
  }
}

/// Removes a folder and everything in it. Symbolic links are not followed.
private func removeTree(_ path: String) {
  if let stream = opendir(path) {
    var names: [String] = []
    while let entry = readdir(stream) {
      names.append(
        withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
    }
    closedir(stream)
    for name in names where name != "." && name != ".." {
      let entry = "\(path)/\(name)"
      if unlink(entry) != 0 { removeTree(entry) }
    }
  }
  rmdir(path)
}
