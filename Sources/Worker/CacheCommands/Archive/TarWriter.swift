/// Writes a tar archive: ustar, with an extended header for a member of 8 GiB or more.
struct TarWriter {
  private let write: ([UInt8]) throws(CommandError) -> Void
  /// The bytes of the current member that have not been written.
  private var left: Int64 = 0
  private var padding = 0

  init(writing write: @escaping ([UInt8]) throws(CommandError) -> Void) { self.write = write }

  /// Begins a member. Its content must follow by `append`.
  mutating func begin(_ header: TarHeader) throws(CommandError) {
    assert(left == 0, "the content of the member before is not complete")
    try write(Self.blocks(of: header))
    (left, padding) = (header.size, TarHeader.padding(after: header.size))
    try endIfComplete()
  }

  mutating func append(_ bytes: [UInt8]) throws(CommandError) {
    precondition(Int64(bytes.count) <= left, "more content than the header says")
    if bytes.isEmpty { return }
    try write(bytes)
    left -= Int64(bytes.count)
    try endIfComplete()
  }

  mutating func member(_ name: String, _ content: [UInt8], modifiedAt: Int) throws(CommandError) {
    try begin(TarHeader(name: name, size: Int64(content.count), modifiedAt: modifiedAt))
    try append(content)
  }

  /// Writes the two blocks at the end of an archive.
  func finish() throws(CommandError) { try write([UInt8](repeating: 0, count: 2 * TarHeader.blockSize)) }

  private mutating func endIfComplete() throws(CommandError) {
    guard left == 0, padding > 0 else { return }
    try write([UInt8](repeating: 0, count: padding))
    padding = 0
  }

  /// The header of a member, after its extended header if it needs one.
  static func blocks(of header: TarHeader) -> [UInt8] {
    guard header.size > TarHeader.maxOctal else { return header.block }
    let record = record("size", String(header.size))
    let extended = TarHeader(
      name: header.name, kind: .extended, size: Int64(record.count), modifiedAt: header.modifiedAt)
    let padding = [UInt8](repeating: 0, count: TarHeader.padding(after: extended.size))
    var short = header
    short.size = 0
    return extended.block + record + padding + short.block
  }

  /// A record `LENGTH NAME=VALUE\n`, whose length contains that of its own digits.
  private static func record(_ name: String, _ value: String) -> [UInt8] {
    let rest = " \(name)=\(value)\n"
    var length = rest.utf8.count
    while String(length).count + rest.utf8.count != length { length = String(length).count + rest.utf8.count }
    return Array("\(length)\(rest)".utf8)
  }
}
