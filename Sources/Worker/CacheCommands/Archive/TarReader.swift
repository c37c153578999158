/// Reads the members of a tar archive one after the other, in memory that does not grow with them.
///
/// It reads what POSIX.1-2017 calls ustar and pax, and the large sizes of GNU tar. It never uses a name as a path.
struct TarReader {
  /// Returns `count` bytes; fewer only at the end of the input.
  private let read: (_ count: Int) throws(ArchiveError) -> [UInt8]
  /// The bytes of the current member, and of the padding after it, that have not been read.
  private var left: Int64 = 0
  private var padding = 0
  private var isOver = false

  /// The largest extended header.
  private static let maxExtendedBytes: Int64 = 1 << 16
  private static let maxPiece = 1 << 18

  init(reading read: @escaping (_ count: Int) throws(ArchiveError) -> [UInt8]) { self.read = read }

  /// The header of the next member that is a file; nil at the end of the archive. Skips the current member.
  mutating func next() throws(ArchiveError) -> TarHeader? {
    var size: Int64?
    var name: String?
    while let header = try nextHeader() {
      guard header.kind == .file else {
        guard header.size <= Self.maxExtendedBytes else {
          throw ArchiveError("an extended tar header of \(header.size) bytes")
        }
        begin(header.size)
        let records = try Self.records(try content())
        // Records for all members, such as comments, cannot describe a single one.
        if header.kind == .extended {
          size = try records["size"].map { text throws(ArchiveError) in try Self.size(text) } ?? size
          name = records["path"] ?? name
        }
        continue
      }
      let actual = TarHeader(
        name: name ?? header.name, size: size ?? header.size, modifiedAt: header.modifiedAt)
      begin(actual.size)
      return actual
    }
    return nil
  }

  /// Up to 256 kB more of the current member; empty at its end.
  mutating func piece() throws(ArchiveError) -> [UInt8] {
    guard left > 0 else { return [] }
    let bytes = try whole(Int(min(left, Int64(Self.maxPiece))))
    left -= Int64(bytes.count)
    return bytes
  }

  /// The rest of the current member, whose size the caller has checked.
  mutating func content() throws(ArchiveError) -> [UInt8] {
    var content: [UInt8] = []
    while case let piece = try piece(), !piece.isEmpty { content += piece }
    return content
  }

  /// Skips the rest of the current member, with its padding.
  mutating func skip() throws(ArchiveError) {
    while case let piece = try piece(), !piece.isEmpty {}
    if padding > 0 { _ = try whole(padding) }
    padding = 0
  }

  private mutating func begin(_ size: Int64) { (left, padding) = (size, TarHeader.padding(after: size)) }

  private mutating func nextHeader() throws(ArchiveError) -> TarHeader? {
    if isOver { return nil }
    try skip()
    let block = try whole(TarHeader.blockSize)
    guard block.allSatisfy({ $0 == 0 }) else { return try TarHeader(decoding: block) }
    isOver = true
    return nil
  }

  private func whole(_ count: Int) throws(ArchiveError) -> [UInt8] {
    let bytes = try read(count)
    guard bytes.count == count else { throw ArchiveError("the archive is cut off") }
    return bytes
  }

  // MARK: Extended headers

  /// The records `LENGTH NAME=VALUE\n` of an extended header (section "pax Extended Header").
  static func records(_ content: [UInt8]) throws(ArchiveError) -> [String: String] {
    var records: [String: String] = [:]
    var rest = content[...]
    while !rest.isEmpty {
      let digits = rest.prefix { $0 != 0x20 }
      guard let length = Int(String(decoding: digits, as: UTF8.self)), length > digits.count + 2, length <= rest.count,
        case let record = rest.prefix(length), record.last == 0x0A,
        let separator = record.firstIndex(of: 0x3D)
      else { throw ArchiveError("an extended tar header with an invalid record") }
      let name = String(decoding: record[(digits.endIndex + 1)..<max(separator, digits.endIndex + 1)], as: UTF8.self)
      records[name] = String(decoding: record[(separator + 1)...].dropLast(), as: UTF8.self)
      rest = rest.dropFirst(length)
    }
    return records
  }

  private static func size(_ text: String) throws(ArchiveError) -> Int64 {
    guard let size = Int64(text), size >= 0 else { throw ArchiveError("an extended tar header with an invalid size") }
    return size
  }
}
