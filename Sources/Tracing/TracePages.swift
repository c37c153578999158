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
  /// The number and the content of the page that is being filled.
  private var number = 1
  private var page: [UInt8]
  /// Complete pages that have not been returned as writes yet.
  private var finished: [Write] = []
  private(set) var finishedBytes = 0
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
    page = []
    page.reserveCapacity(Self.pageSize)
    precondition(maxPages >= 2 && tail.count < Self.pageSize / 2)
  }

  /// The largest number of bytes of a piece, without the comma and the line feed after it.
  var room: Int { Self.pageSize - tail.count - 2 }

  /// The size of the file after all writes so far.
  var byteCount: Int64 {
    lap > 0 ? Int64(maxPages * Self.pageSize) : Int64(number * Self.pageSize + page.count + tail.count)
  }

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
    if page.count + piece.count > room { turnPage() }
    page.append(contentsOf: piece)
    page.append(UInt8(ascii: ","))
    page.append(UInt8(ascii: "\n"))
    latest[number] = max(latest[number], time)
    hasChanged = true
    return true
  }

  private mutating func turnPage() {
    add(Write(offset: offset(of: number), bytes: rendered(isLast: number == maxPages - 1)))
    page.removeAll(keepingCapacity: true)
    number += 1
    if number == maxPages { (number, lap) = (1, lap + 1) }
    if number == latest.count {
      latest.append(.min)
    } else {
      droppedUntil = max(droppedUntil ?? .min, latest[number])
      latest[number] = .min
    }
  }

  private mutating func add(_ write: Write) {
    finishedBytes += write.bytes.count
    if let last = finished.last, last.offset + Int64(last.bytes.count) == write.offset {
      finished[finished.count - 1].bytes += write.bytes
    } else {
      finished.append(write)
    }
  }

  private func offset(of page: Int) -> Int64 { Int64(page * Self.pageSize) }

  /// The page that is being filled, with spaces up to its end; with the tail if it is the last page of the file.
  private func rendered(isLast: Bool) -> [UInt8] {
    var bytes = page
    bytes.reserveCapacity(Self.pageSize)
    bytes += repeatElement(UInt8(ascii: " "), count: Self.pageSize - (isLast ? tail.count : 0) - page.count)
    if isLast { bytes += tail }
    return bytes
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
    if hasChanged || isGrowing && headerHasChanged {
      let isLast = isGrowing || number == maxPages - 1
      add(Write(offset: offset(of: number), bytes: isGrowing ? page + tail : rendered(isLast: isLast)))
    }
    // One write for the first pages, so that the file is never without its tail.
    if let first = writes.first, let next = finished.first, next.offset == Int64(first.bytes.count) {
      finished[0] = Write(offset: 0, bytes: first.bytes + next.bytes)
      writes = []
    }
    writes += finished
    (finished, finishedBytes, hasChanged, headerHasChanged) = ([], 0, false, false)
    return writes
  }
}
