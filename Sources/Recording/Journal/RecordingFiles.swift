internal import ImageStore
internal import Loading
internal import Platform
internal import Text

/// The files of a recording: `journal.jsonl`, and the bodies in `bodies`, named by their SHA-256.
struct RecordingFiles: Sendable {
  let directory: String

  var journal: String { directory + "/journal.jsonl" }
  var bodies: String { directory + "/bodies" }

  func body(_ digest: String) -> String { "\(bodies)/\(digest)" }

  /// The file of a body that has not ended, or whose end was recorded right before a kill.
  func part(ofTransfer number: UInt64) -> String { "\(bodies)/transfer-\(number).part" }

  /// The largest file of a host that is recorded.
  static let maxHostFile: Int64 = 1 << 30

  /// Appends bytes to a file, which is created if it does not exist.
  func append(_ bytes: [UInt8], to path: String) throws(RecordingError) {
    let file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw systemFailure("\(path) cannot be opened") }
    defer { close(file) }
    try write(bytes, to: file, path)
  }

  func write(_ bytes: [UInt8], to file: Int32, _ path: String) throws(RecordingError) {
    var done = 0
    while done < bytes.count {
      let count = bytes.withUnsafeBytes { writeDescriptor(file, $0.baseAddress! + done, $0.count - done) }
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { throw systemFailure("\(path) cannot be written") }
      done += count
    }
  }

  /// Gives a complete body its name.
  func publish(_ part: String, as digest: String) throws(RecordingError) {
    guard rename(part, body(digest)) == 0 else { throw systemFailure("\(part) cannot be renamed") }
  }

  /// Copies a file of the host. Returns its size and digest; nil if it cannot be read.
  func copy(hostFile path: String) throws(RecordingError) -> (byteCount: Int64, digest: String?)? {
    let source = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard source >= 0 else { return nil }
    defer { close(source) }
    var status = stat()
    guard fstat(source, &status) == 0 else { return nil }
    let size = Int64(status.st_size)
    guard size <= Self.maxHostFile else { return (size, nil) }
    let part = "\(bodies)/host-file.part"
    unlink(part)
    var hash = SHA256()
    var byteCount: Int64 = 0
    var buffer = [UInt8](repeating: 0, count: 1 << 18)
    while true {
      let count = read(source, &buffer, buffer.count)
      if count < 0 && errno == EINTR { continue }
      guard count >= 0 else { return nil }
      hash.update(Array(buffer.prefix(count)))
      try append(Array(buffer.prefix(count)), to: part)
      byteCount += Int64(count)
      if count == 0 { break }
    }
    let digest = hash.finish().hexadecimal
    try publish(part, as: digest)
    return (byteCount, digest)
  }
}

/// The error of a system call that has just failed.
func systemFailure(_ text: String) -> RecordingError { RecordingError("\(text): \(String(cString: strerror(errno)))") }
