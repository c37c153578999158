internal import LineRPC

/// The text of a trace file, in pages of 4096 bytes. A pure value that returns the writes to be done.
///
/// No piece of text, which is one or several events, crosses the end of a page; the rest of a page is spaces. The file
/// ends with the `tail`, which closes the array and is overwritten by the next pieces.
///
/// The file is a whole array after each write. A process that is killed within a write leaves complete pages: Linux
/// stops a write to a file for a signal between pages only. The `tail` may then be missing. The Trace Event Format
/// allows an array without its closing bracket for this reason.
struct TracePages: ~Copyable {
  static let pageSize = 4096

  struct Write {
    var offset: Int64
    var bytes: [UInt8]
  }

  private let limit: Int64
  private let tail: [UInt8]
  /// The text since the last write, and its place in the file.
  private var text = OutputText(capacity: 16 * pageSize)
  private var offset: Int64 = 0

  /// - Parameters:
  ///   - limit: the largest size of the file in bytes; at least two pages.
  ///   - tail: the last event and the closing bracket. Shorter than a page by much.
  init(limit: Int64, tail: [UInt8]) {
    precondition(limit >= 2 * Self.pageSize && tail.count < Self.pageSize / 2)
    (self.limit, self.tail) = (limit, tail)
    text.append(UInt8(ascii: "["))
  }

  /// The largest number of bytes of a piece, without the comma and the line feed after it.
  var room: Int { Self.pageSize - tail.count - 3 }

  /// The size of the file after all writes so far.
  var byteCount: Int64 { offset + Int64(text.count + tail.count) }

  /// The bytes that wait to be written.
  var pendingBytes: Int { text.count }

  /// Whether any piece still fits, with another one after it that says that the file is full.
  var hasSpace: Bool { byteCount + Int64(2 * Self.pageSize) <= limit }

  /// Appends a piece of at most `room` bytes, and a comma.
  mutating func append(_ piece: UnsafeRawBufferPointer) {
    precondition(piece.count <= room)
    let spaces = Self.pageSize - Int((offset + Int64(text.count)) % Int64(Self.pageSize))
    if piece.count + 2 + tail.count > spaces {
      text.append(atMost: spaces) { end in
        end.update(repeating: UInt8(ascii: " "), count: spaces)
        return spaces
      }
    }
    text.append(piece)
    text.append(",\n")
  }

  /// Returns what must be written for the file to have all that was appended; nil if nothing was since the last call.
  mutating func takeWrite() -> Write? {
    guard text.count > 0 else { return nil }
    let write = Write(offset: offset, bytes: text.bytes + tail)
    offset += Int64(text.count)
    text.removeAll()
    return write
  }
}
