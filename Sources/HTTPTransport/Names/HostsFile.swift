internal import CCurl
internal import HTTPTypes
internal import Platform
internal import Text

/// The names and addresses of a file in the format of hosts(5).
///
/// Such files may have hundreds of thousands of names, so a line is parsed only when one of its names is looked up.
struct HostsFile {
  private struct Entry {
    let hash: UInt64
    /// The index of the line's first byte.
    let line: Int
  }

  private let bytes: [UInt8]
  /// One entry for each name of each line, sorted by hash and line.
  private let entries: [Entry]

  init(_ bytes: [UInt8] = []) {
    self.bytes = bytes
    var entries: [Entry] = []
    bytes.withUnsafeBufferPointer { bytes in
      var line = 0
      while line < bytes.count {
        let end = bytes[line...].firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
        Self.forEachWord(of: bytes[line..<end]) { word, isAddress in
          if !isAddress { entries.append(Entry(hash: Self.hash(word), line: line)) }
        }
        line = end + 1
      }
    }
    self.entries = entries.sorted { ($0.hash, $0.line) < ($1.hash, $1.line) }
  }

  /// The addresses of all lines with the name, in the order of the file. Malformed lines are ignored.
  ///
  /// - Parameter name: in lower case.
  subscript(name: String) -> [IPAddress] {
    guard !entries.isEmpty else { return [] }
    let name = Array((name.hasSuffix(".") ? name.dropLast() : name[...]).utf8)
    let hash = name.withUnsafeBufferPointer { Self.hash($0[...]) }
    var (first, end) = (0, entries.count)
    while first < end {
      let middle = (first + end) / 2
      if entries[middle].hash < hash { first = middle + 1 } else { end = middle }
    }
    return bytes.withUnsafeBufferPointer { bytes in
      entries[first...].prefix { $0.hash == hash }.compactMap { entry in
        let line = bytes[entry.line...].prefix { $0 != UInt8(ascii: "\n") }
        var address: IPAddress?
        var hasName = false
        Self.forEachWord(of: line) { word, isAddress in
          if isAddress {
            address = IPAddress(String(decoding: word, as: UTF8.self))
          } else if word.lazy.map(\.asciiLowercased).elementsEqual(name) {
            hasName = true
          }
        }
        return hasName ? address : nil
      }
    }
  }

  private typealias Word = Slice<UnsafeBufferPointer<UInt8>>

  /// Calls `body` for each word of a line, the first of which is the address. A `#` begins a comment.
  private static func forEachWord(of line: Word, _ body: (Word, _ isAddress: Bool) -> Void) {
    var rest = line
    var isFirst = true
    while let begin = rest.firstIndex(where: { !isSpace($0) }), rest[begin] != UInt8(ascii: "#") {
      let end = rest[begin...].firstIndex { isSpace($0) || $0 == UInt8(ascii: "#") } ?? rest.endIndex
      body(rest[begin..<end], isFirst)
      isFirst = false
      rest = rest[end...]
    }
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0d }

  /// The hash of the name in lower case.
  private static func hash(_ name: Word) -> UInt64 {
    var hash = FNV1a()
    for byte in name { hash.combine(byte.asciiLowercased) }
    return hash.value
  }
}

/// A file that is read again after it has changed.
struct WatchedFile {
  let path: String
  /// Device, inode, size and time of modification; nil if the file does not exist.
  private var identity: [Int64]?
  private var hasLooked = false
  private var lookedAt = Instant.now

  init(path: String) { self.path = path }

  /// The file's content if it has changed since the last call; empty if the file does not exist. Nil if it has not
  /// changed or cannot be read now.
  mutating func change(now: Instant) -> [UInt8]? {
    guard hasChanged(now: now) else { return nil }
    if identity == nil { return [] }
    let bytes = read()
    // Possibly out of descriptors: the next call must see a change.
    if bytes == nil { identity = nil }
    return bytes
  }

  /// Whether the file differs from that of the last call, or this is the first call. It checks once a second at most.
  mutating func hasChanged(now: Instant) -> Bool {
    if hasLooked, lookedAt.duration(to: now) < .seconds(1) { return false }
    lookedAt = now
    let current = Self.identity(of: path)
    defer { (identity, hasLooked) = (current, true) }
    return !hasLooked || current != identity
  }

  private func read() -> [UInt8]? {
    guard let file = fopen(path, "re") else { return nil }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 64 << 10)
    while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { bytes += buffer[..<count] }
    return bytes
  }

  private static func identity(of path: String) -> [Int64]? {
    var info = stat()
    guard stat(path, &info) == 0 else { return nil }
    let time = info.modificationTime
    return [
      Int64(truncatingIfNeeded: info.st_dev), Int64(truncatingIfNeeded: info.st_ino), Int64(info.st_size),
      Int64(time.tv_sec), Int64(time.tv_nsec),
    ]
  }
}
