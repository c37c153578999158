internal import LineRPC

/// The layout of a trace file: a ring of pages, the oldest of which is overwritten when the file has its largest size.
/// A pure value that returns the writes to be done.
///
/// A page is 4096 bytes. No piece of text, which is one or several events, crosses the end of a page; the rest of a
/// page is spaces. Page 0 has the bracket that opens the array, the last page has the `tail` with the one that closes
/// it.
///
/// The file is a whole array after each write. A process that is killed within a write leaves complete pages: Linux
/// stops a write to a file for a signal between pages only. While the file grows, its `tail` may then be missing. The
/// Trace Event Format allows an array without its closing bracket for this reason. A file that no longer grows always
/// has its tail.
struct TracePages: ~Copyable {
  static let pageSize = 4096

  struct Write {
    var offset: Int64
    var bytes: [UInt8]
  }

  /// The largest number of pages, page 0 included.
  let maxPages: Int
  private let tail: [UInt8]
  /// The bytes of page 0 after the bracket.
  private var header: [UInt8] = []
  private var headerHasChanged = true
  /// How many times the ring has begun again at page 1.
  private(set) var lap = 0
  /// The pages that have not been written, one after the other; the last one is being filled.
  private var run = OutputText(capacity: 16 * pageSize)
  /// The number of the page that is being filled, and where it begins in `run`.
  private var number = 1
  private var pageStart = 0
  /// Complete runs before the present one, which began when the ring did.
  private var earlierRuns: [Write] = []
  private var hasChanged = false
  /// The latest time in each page.
  private var latest: [Int64] = [0, .min]
  /// The latest time of an event that was overwritten; nil if none was.
  private(set) var droppedUntil: Int64?

  /// - Parameters:
  ///   - limit: the largest size of the file in bytes; at least two pages.
  ///   - tail: the last event and the closing bracket. Shorter than a page by much.
  init(limit: Int64, tail: [UInt8]) {
    maxPages = Int(min(limit, 1 << 50)) / Self.pageSize
    self.tail = tail
    precondition(maxPages >= 2 && tail.count < Self.pageSize / 2)
  }

  /// The largest number of bytes of a piece, without the comma and the line feed after it.
  var room: Int { Self.pageSize - tail.count - 2 }

  /// The size of the file after all writes so far.
  var byteCount: Int64 {
    lap > 0 ? Int64(maxPages * Self.pageSize) : Int64(number * Self.pageSize + pageLength + tail.count)
  }

  /// The bytes of complete pages that wait to be written.
  var finishedBytes: Int { pageStart + earlierRuns.reduce(0) { $0 + $1.bytes.count } }

  private var pageLength: Int { run.count - pageStart }

  /// Sets the content of page 0, which is at most `room` bytes minus the bracket and is never overwritten by events.
  mutating func setHeader(_ bytes: [UInt8]) {
    precondition(bytes.count < room)
    (header, headerHasChanged) = (bytes, true)
  }

  /// Appends a piece, and a comma. A longer piece than `room` is refused.
  ///
  /// - Parameter time: the time at which the last of its events ends.
  /// - Returns: whether the piece was appended.
  mutating func append(_ piece: UnsafeRawBufferPointer, endingAt time: Int64) -> Bool {
    guard piece.count <= room else { return false }
    if pageLength + piece.count > room { turnPage() }
    run.append(piece)
    run.append(UInt8(ascii: ","))
    run.append(UInt8(ascii: "\n"))
    latest[number] = max(latest[number], time)
    hasChanged = true
    return true
  }

  private mutating func turnPage() {
    complete(isLast: number == maxPages - 1)
    number += 1
    pageStart = run.count
    if number == maxPages {
      earlierRuns.append(Write(offset: runOffset, bytes: run.bytes))
      run.removeAll()
      (pageStart, number, lap) = (0, 1, lap + 1)
    }
    if number == latest.count {
      latest.append(.min)
    } else {
      droppedUntil = max(droppedUntil ?? .min, latest[number])
      latest[number] = .min
    }
  }

  private var runOffset: Int64 { Int64(number * Self.pageSize - pageStart) }

  /// Fills the page with spaces up to its end; with the tail if it is the last page of the file.
  private mutating func complete(isLast: Bool) {
    let spaces = Self.pageSize - (isLast ? tail.count : 0) - pageLength
    run.append(atMost: spaces) { end in
      end.update(repeating: UInt8(ascii: " "), count: spaces)
      return spaces
    }
    if isLast { tail.withUnsafeBytes { run.append($0) } }
  }

  /// Returns what must be written for the file to have all that was appended. The writes must be done in order.
  mutating func takeWrites() -> [Write] {
    var writes: [Write] = []
    if headerHasChanged {
      var bytes = [UInt8(ascii: "[")] + header
      bytes += repeatElement(UInt8(ascii: " "), count: Self.pageSize - bytes.count)
      writes.append(Write(offset: 0, bytes: bytes))
    }
    let isGrowing = lap == 0
    var runs = earlierRuns
    if hasChanged || isGrowing && headerHasChanged {
      let (offset, length) = (runOffset, run.count)
      if isGrowing {
        tail.withUnsafeBytes { run.append($0) }
      } else {
        complete(isLast: number == maxPages - 1)
      }
      let bytes = run.bytes
      runs.append(Write(offset: offset, bytes: bytes))
      // The rest of the page is written together with its beginning.
      run.removeAll()
      bytes.withUnsafeBytes { run.append(UnsafeRawBufferPointer(rebasing: $0[pageStart..<length])) }
      pageStart = 0
    }
    // One write for the first pages, so that the file is never without its tail.
    if let first = writes.first, let next = runs.first, next.offset == Int64(first.bytes.count) {
      runs[0] = Write(offset: 0, bytes: first.bytes + next.bytes)
      writes = []
    }
    writes += runs
    (earlierRuns, hasChanged, headerHasChanged) = ([], false, false)
    return writes
  }
}
