internal import ImageStore
internal import LineRPC
internal import Loading
internal import Platform
internal import Text
internal import Threads

/// Writes a journal and its bodies on a thread of its own, without secrets.
///
/// `add` waits while too much is queued, so that memory is bounded and nothing is lost. If the disk is full or fails,
/// the recording ends there, after a whole line, and the session continues.
final class JournalWriter: Sendable {
  enum Entry: Sendable {
    case cause(Cause, Moment)
    case effect(Effect)
  }

  /// The number of queued bytes at which `add` waits.
  private static let maxBytes = 32 << 20

  private struct State {
    var entries: [Entry] = []
    var byteCount = 0
    var isEnding = false
    var hasEnded = false
    var hasFailed = false
  }

  private let state = Locked(State())
  private let files: RecordingFiles
  private let coding: JournalCoding
  private let onFailure: @Sendable (String) -> Void

  /// Creates the journal with its header, and starts the thread.
  ///
  /// - Parameter onFailure: called once at most, on any thread, with the reason why the recording ends.
  init(
    _ files: RecordingFiles, header: Header, coding: JournalCoding, paths: WorkerPaths,
    onFailure: @escaping @Sendable (String) -> Void
  ) throws(RecordingError) {
    (self.files, self.coding, self.onFailure) = (files, coding, onFailure)
    let journal = open(files.journal, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0o600)
    guard journal >= 0 else { throw systemFailure("\(files.journal) cannot be created") }
    var sanitizer = Sanitizer(redactsQueries: header.redactsQueries, paths: paths)
    try files.write(Self.line(sanitizer.cleanHeader(header.json)), to: journal, files.journal)
    startThread(name: "recorder") { [self, sanitizer] in
      var output = JournalOutput(files: files, coding: coding, sanitizer: sanitizer, journal: journal)
      run(&output)
      close(journal)
    }
  }

  /// Queues an entry. Waits while too much is queued.
  func add(_ entry: Entry, byteCount: Int) {
    let isFirst: Bool? = state.wait { state in
      if state.hasFailed { return false }
      guard state.byteCount < Self.maxBytes else { return nil }
      state.entries.append(entry)
      state.byteCount += byteCount
      return state.entries.count == 1
    }
    if isFirst == true { state.notify() }
  }

  /// Ends the recording because of an error outside of the writer.
  func fail(_ error: RecordingError) {
    let isNew = state.withLock { state in
      defer { state.hasFailed = true }
      return !state.hasFailed
    }
    state.notify()
    if isNew { onFailure(error.message) }
  }

  /// Writes what is queued and ends the thread.
  func finish() {
    state.withLock { $0.isEnding = true }
    state.notify()
    _ = state.wait { $0.hasEnded ? () : nil }
  }

  private func run(_ output: inout JournalOutput) {
    while true {
      let entries: [Entry]? = state.wait { state in
        if state.hasFailed { return [] }
        if state.entries.isEmpty { return state.isEnding ? [] : nil }
        defer { (state.entries, state.byteCount) = ([], 0) }
        return state.entries
      }
      guard let entries, !entries.isEmpty else { break }
      state.notify()
      do throws(RecordingError) {
        try output.write(entries)
      } catch {
        fail(error)
        break
      }
    }
    state.withLock { state in
      (state.entries, state.hasEnded) = ([], true)
    }
    state.notify()
  }

  static func line(_ json: JSON) -> [UInt8] {
    var writer = JSONWriter(capacity: 256)
    writer.value(json)
    return writer.line()
  }
}

/// The files of a journal that is being written.
private struct JournalOutput: ~Copyable {
  let files: RecordingFiles
  let coding: JournalCoding
  var sanitizer: Sanitizer
  let journal: Int32
  /// The digests of the bodies that have not ended.
  private var digests = BodyDigests()
  /// The bodies that get their names when the lines about them are written.
  private var complete: [(transfer: UInt64, digest: String)] = []

  init(files: RecordingFiles, coding: JournalCoding, sanitizer: Sanitizer, journal: Int32) {
    (self.files, self.coding, self.sanitizer, self.journal) = (files, coding, sanitizer, journal)
  }

  /// Writes the entries. If that fails, the journal ends with the last entry that was written whole.
  mutating func write(_ entries: [JournalWriter.Entry]) throws(RecordingError) {
    var lines: [UInt8] = []
    do throws(RecordingError) {
      for entry in entries {
        lines += try line(entry)
        if lines.count >= 1 << 18 { try writeLines(&lines) }
      }
    } catch {
      // A body could not be written. Keep the lines before it.
      try? writeLines(&lines)
      throw error
    }
    try writeLines(&lines)
  }

  private mutating func writeLines(_ lines: inout [UInt8]) throws(RecordingError) {
    defer { (lines, complete) = ([], []) }
    var before = stat()
    fstat(journal, &before)
    do throws(RecordingError) {
      try files.write(lines, to: journal, files.journal)
    } catch {
      keepWholeLines(lines, writtenFrom: before.st_size)
      throw error
    }
    for (transfer, digest) in complete { try files.publish(files.part(ofTransfer: transfer), as: digest) }
  }

  /// Removes the incomplete line at the end of a journal.
  private func keepWholeLines(_ lines: [UInt8], writtenFrom start: off_t) {
    var now = stat()
    fstat(journal, &now)
    let written = lines.prefix(max(0, Int(now.st_size - start)))
    let whole = written.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
    _ = ftruncate(journal, start + off_t(whole))
  }

  private mutating func line(_ entry: JournalWriter.Entry) throws(RecordingError) -> [UInt8] {
    switch entry {
    case .effect(let effect): return JournalWriter.line(sanitizer.clean(effect.json))
    case .cause(.body(let transfer, let count, let bytes), let moment):
      try files.append(bytes, to: files.part(ofTransfer: transfer))
      digests.update(transfer, bytes)
      return JournalWriter.line(coding.json(.body(transfer: transfer, count: count, []), at: moment))
    case .cause(.end(let transfer, let outcome, _), let moment):
      let digest = digests.finish(transfer)
      if let digest { complete.append((transfer, digest)) }
      let cause = Cause.end(transfer: transfer, outcome, body: digest)
      return JournalWriter.line(sanitizer.clean(coding.json(cause, at: moment)))
    case .cause(let cause, let moment): return JournalWriter.line(sanitizer.clean(coding.json(cause, at: moment)))
    }
  }
}

/// The SHA-256 of each body that is being received.
private struct BodyDigests {
  /// A class, since a hash cannot be copied.
  private final class Hash {
    var value = SHA256()
  }

  private var hashes: [UInt64: Hash] = [:]

  mutating func update(_ transfer: UInt64, _ bytes: [UInt8]) {
    let hash = hashes[transfer] ?? Hash()
    hashes[transfer] = hash
    hash.value.update(bytes)
  }

  /// Returns the digest in hexadecimal; nil if the transfer had no body.
  mutating func finish(_ transfer: UInt64) -> String? {
    hashes.removeValue(forKey: transfer).map { $0.value.finish().hexadecimal }
  }
}
