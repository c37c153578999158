internal import HTTPTransport
internal import ImageStore
internal import LineRPC
internal import Loading
internal import Platform
internal import Text

/// A recording that has been read and checked as a whole.
public struct Recording: Sendable {
  public let header: Header
  /// Whether the journal ends before the session did: the worker was killed, or the disk was full.
  public let isIncomplete: Bool
  /// The Unix time of the session's start, in seconds.
  let startTime: Int
  /// The number of causes and of lines for the host.
  public let causeCount: Int
  public let sentCount: Int
  let files: RecordingFiles
  /// The files of the bodies of transfers that have ended.
  let bodies: [UInt64: String]

  /// Reads the journal and checks that every body is there and has its digest.
  public init(in directory: String) throws(RecordingError) {
    let files = RecordingFiles(directory: directory)
    let reader = try JournalReader(files.journal, start: .now)
    var check = RecordingCheck(files: files)
    while let group = try reader.nextGroup() { try check.add(group) }
    guard check.causeCount > 0 else { throw RecordingError("\(files.journal) has no session") }
    try check.finish()
    (header, self.files, bodies) = (reader.header, files, check.bodies)
    isIncomplete = reader.isCut || !check.hasEnded
    (causeCount, sentCount, startTime) = (check.causeCount, check.sentCount, check.startTime)
  }
}

/// The check of a recording, group by group.
private struct RecordingCheck {
  let files: RecordingFiles
  private(set) var bodies: [UInt64: String] = [:]
  private(set) var causeCount = 0
  private(set) var sentCount = 0
  private(set) var startTime = 0
  private(set) var hasEnded = false
  /// The bytes of each transfer so far, and whether it has ended.
  private var transfers: [UInt64: (byteCount: Int64, hasEnded: Bool)] = [:]
  private var time = Int64.min

  init(files: RecordingFiles) { self.files = files }

  mutating func add(_ group: JournalGroup) throws(RecordingError) {
    do throws(RecordingError) {
      guard causeCount > 0 || group.cause.isStart else { throw RecordingError("the first cause must be start") }
      guard group.moment.nanoseconds >= time else { throw RecordingError("at must not be before the last cause") }
      if causeCount == 0 { startTime = group.moment.unixTime }
      (causeCount, time) = (causeCount + 1, group.moment.nanoseconds)
      for (_, effect) in group.effects {
        guard case .object(let members) = effect else { throw RecordingError("an effect must be an object") }
        if members["sent"] != nil { sentCount += 1 }
        if members["exit"] != nil { hasEnded = true }
        if case .integer(let number)? = members["transfer"] { transfers[UInt64(clamping: number)] = (0, false) }
      }
      try add(group.cause)
    } catch {
      throw RecordingError("\(files.journal), line \(group.line): \(error.message)")
    }
  }

  private mutating func add(_ cause: Cause) throws(RecordingError) {
    switch cause {
    case .redirect(let transfer, _), .response(let transfer, _): _ = try running(transfer)
    case .body(let transfer, let count, _):
      transfers[transfer] = (try running(transfer) + Int64(count), false)
    case .end(let transfer, _, let digest):
      let byteCount = try running(transfer)
      transfers[transfer] = (byteCount, true)
      if let digest {
        let (path, part) = (files.body(digest), files.part(ofTransfer: transfer))
        let file = access(path, F_OK) != 0 && access(part, F_OK) == 0 ? part : path
        try check(file, digest: digest, byteCount: byteCount)
        bodies[transfer] = file
      } else if byteCount > 0 {
        throw RecordingError("body is missing")
      }
    case .input(let lines):
      for case .json(_, _, let paths) in lines {
        for path in paths {
          if let digest = path.digest { try check(files.body(digest), digest: digest, byteCount: path.byteCount) }
        }
      }
    default: break
    }
  }

  /// The bytes so far of a transfer that must be running.
  private func running(_ transfer: UInt64) throws(RecordingError) -> Int64 {
    guard let state = transfers[transfer] else { throw RecordingError("transfer \(transfer) has not started") }
    guard !state.hasEnded else { throw RecordingError("transfer \(transfer) has ended") }
    return state.byteCount
  }

  /// Checks the bodies of the transfers that have not ended.
  func finish() throws(RecordingError) {
    for (transfer, state) in transfers.sorted(by: { $0.key < $1.key }) where !state.hasEnded && state.byteCount > 0 {
      try check(files.part(ofTransfer: transfer), digest: nil, byteCount: state.byteCount)
    }
  }

  /// - Parameter digest: nil for a body that has not ended, of which the file may have more bytes.
  private func check(_ path: String, digest: String?, byteCount: Int64) throws(RecordingError) {
    let body = try BodyFile(path)
    var hash = SHA256()
    var offset: Int64 = 0
    while case let piece = try body.read(at: offset, count: 1 << 18), !piece.isEmpty {
      hash.update(piece)
      offset += Int64(piece.count)
    }
    guard offset >= byteCount, digest == nil || offset == byteCount else {
      throw RecordingError("\(path) has \(offset) bytes instead of \(byteCount)")
    }
    if let digest, hash.finish().hexadecimal != digest {
      throw RecordingError("\(path) is damaged: its content does not have this SHA-256")
    }
  }
}

extension Cause {
  fileprivate var isStart: Bool { if case .start = self { true } else { false } }
}

/// An open file of a recording.
final class BodyFile {
  private let path: String
  private let file: Int32

  init(_ path: String) throws(RecordingError) {
    self.path = path
    file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw RecordingError("\(path) cannot be opened: \(String(cString: strerror(errno)))") }
  }

  deinit { close(file) }

  /// Up to `count` bytes; fewer only at the end of the file.
  func read(at offset: Int64, count: Int) throws(RecordingError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var done = 0
    while done < count {
      let read = bytes.withUnsafeMutableBytes {
        pread(file, $0.baseAddress! + done, count - done, off_t(offset) + done)
      }
      if read < 0 && errno == EINTR { continue }
      guard read >= 0 else { throw RecordingError("\(path) cannot be read: \(String(cString: strerror(errno)))") }
      if read == 0 { break }
      done += read
    }
    return Array(bytes.prefix(done))
  }
}
