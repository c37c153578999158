public import LineRPC
internal import Platform
internal import Threads

/// Takes down the lines of the host on the reader's thread, and what the paths in them lead to.
public final class InputRecorder: Sendable {
  private let lines = Locked<[InputLine]>([])
  private let recorder: Recorder
  private let maxLine: Int

  /// - Parameter maxLine: the limit that the reader applies, in bytes.
  public init(_ recorder: Recorder, maxLine: Int) { (self.recorder, self.maxLine) = (recorder, maxLine) }

  /// `note` as a closure.
  public var observe: @Sendable (LineSplitter.Line) -> Void { { self.note($0) } }

  /// Takes down a line that the reader has found.
  func note(_ line: LineSplitter.Line) {
    let input: InputLine
    switch line {
    case .tooLong: input = .tooLong(limit: maxLine)
    case .text(let text):
      if let json = try? JSON(parsing: text) {
        input = .json(json, byteCount: text.count, hostPaths(in: json))
      } else if case .call(.refused(let error, _)) = Incoming(line: text) {
        input = .invalid(error.message)
      } else {
        return assertionFailure("a line is JSON or refused")
      }
    }
    lines.withLock { $0.append(input) }
  }

  /// Returns and removes the lines since the last call.
  public func take() -> [InputLine] { lines.withLock { $0.take() } }

  private func hostPaths(in json: JSON) -> [HostPath] {
    RequestPaths.all(in: json).map { path in
      var found = HostPath(of: path.text)
      guard path.isContent, found.kind == .file else { return found }
      do throws(RecordingError) {
        guard let copy = try recorder.files.copy(hostFile: path.text) else { return found }
        (found.byteCount, found.digest) = copy
      } catch {
        recorder.journal.fail(error)
      }
      return found
    }
  }
}

extension HostPath {
  /// Examines a path now.
  init(of path: String) {
    self.path = path
    var status = stat()
    if stat(path, &status) != 0 {
      kind = .missing
    } else {
      switch status.st_mode & S_IFMT {
      case S_IFREG: kind = .file
      case S_IFDIR: kind = .folder
      default: kind = .other
      }
      byteCount = kind == .file ? Int64(status.st_size) : 0
    }
    let parent = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
    hasParent = stat(parent.isEmpty ? "/" : parent, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }
}

extension Array {
  fileprivate mutating func take() -> [Element] {
    defer { self = [] }
    return self
  }
}
