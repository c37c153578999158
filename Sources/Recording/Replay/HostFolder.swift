internal import LineRPC
internal import Platform

/// The files of the host in a replay: below a folder of their own, so that nothing is written outside.
struct HostFolder: Sendable {
  /// The folder that stands for `/`.
  let root: String
  let files: RecordingFiles

  /// The line with its paths below the folder, after what they led to has been made.
  func localized(_ line: JSON, _ paths: [HostPath]) throws(RecordingError) -> JSON {
    for path in paths where path.path.hasPrefix("/") { try make(path) }
    return RequestPaths.replacing(in: line) { root + $0.text }
  }

  private func make(_ path: HostPath) throws(RecordingError) {
    let local = root + path.path
    if path.hasParent, let slash = local.lastIndex(of: "/") { try createFolders(String(local[..<slash])) }
    switch path.kind {
    // A later request for the same path finds what the session has made of it.
    case .missing, .other: break
    case .folder: try createFolders(local)
    case .file: try makeFile(local, path)
    }
  }

  /// Creates a file, unless the session has written one there.
  private func makeFile(_ local: String, _ path: HostPath) throws(RecordingError) {
    var status = stat()
    if path.digest == nil, stat(local, &status) == 0 { return }
    unlink(local)
    try files.append([], to: local)
    if let digest = path.digest {
      let body = try BodyFile(files.body(digest))
      var offset: Int64 = 0
      while case let piece = try body.read(at: offset, count: 1 << 18), !piece.isEmpty {
        try files.append(piece, to: local)
        offset += Int64(piece.count)
      }
    } else {
      // The content does not matter: the file is replaced, or too large to be read.
      truncate(local, off_t(path.byteCount))
    }
  }
}

/// Creates a folder with its missing parents.
public func createFolders(_ path: String) throws(RecordingError) {
  if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
  guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
    throw systemFailure("the folder \(path) cannot be created")
  }
  try createFolders(String(path[..<slash]))
  guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
    throw systemFailure("the folder \(path) cannot be created")
  }
}
