/// The way of events to the file: their text, the pages, and the writes.
///
/// One value, so that an event costs one check for exclusive access.
struct TraceOutput: ~Copyable {
  private var file: TraceFile?
  private var pages: TracePages
  /// The events that are being written, which become one piece.
  private var text = EventText()
  private let worker: TraceGroup
  private(set) var eventCount = 0
  /// The number of events that were not written because they were too long.
  private(set) var refusedCount = 0
  private(set) var error: TraceError?
  /// Whether the file has its largest size. Nothing more is written then.
  private(set) var isFull = false
  /// The latest time of an event.
  private var latest: Int64 = 0

  /// The first bytes of each trace, by which an earlier one is recognised.
  static let beginning = Array("[{\"name\":\"process_name\",\"ph\":\"M\"".utf8)
  /// The amount of text at which it is written to the file.
  private static let maxPendingBytes = 256 << 10
  private static let tail = Array(
    "{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":1,\"tid\":0,\"args\":{\"sort_index\":0}}\n]\n".utf8)

  init(file: consuming TraceFile, limit: Int64, worker: TraceGroup) throws(TraceError) {
    self.file = consume file
    self.worker = worker
    pages = TracePages(limit: limit, tail: Self.tail)
    write(count: 2) { $0.appendName(of: worker) }
    flush()
    if let error { throw error }
  }

  var byteCount: Int64 { pages.byteCount }

  // MARK: - Events

  /// Writes events as one piece.
  ///
  /// - Parameters:
  ///   - time: the end of the last of them.
  ///   - count: their number.
  ///   - append: appends them.
  mutating func write(endingAt time: Int64 = 0, count: Int = 1, _ append: (inout EventText) -> Void) {
    guard error == nil, !isFull else { return }
    defer { text.removeAll() }
    append(&text)
    guard text.withBytes({ $0.count <= pages.room }) else {
      refusedCount += count
      return
    }
    guard pages.hasSpace else { return end() }
    text.withBytes { pages.append($0) }
    eventCount += count
    latest = max(latest, time)
    if pages.pendingBytes > Self.maxPendingBytes { flush() }
  }

  /// Says in the file that it is full.
  private mutating func end() {
    isFull = true
    text.removeAll()
    text.appendInstant(
      TraceLabel("trace full", "trace"), TraceRow(pid: worker.pid, tid: 0, name: ""), at: latest, .all, nil)
    text.withBytes { pages.append($0) }
    eventCount += 1
  }

  // MARK: - The file

  /// Writes all events so far to the file.
  mutating func flush() {
    guard error == nil, let write = pages.takeWrite() else { return }
    do throws(TraceError) {
      try file?.write(write)
    } catch {
      self.error = error
    }
  }

  /// Writes all events and closes the file.
  mutating func close() {
    flush()
    file = nil
  }
}
