internal import ImageTypes
internal import Text

/// The path of an image file, which identifies its shard, its row and its worker.
///
/// It consists of the row's id, which contains the worker's instance number, and the first bytes of the content's
/// digest. So a name is never used for other content, the row of a file is found without an index of names, and the
/// name of a file without a row tells which worker may still be about to write the row.
struct FileName: Equatable {
  /// The instance number in the upper half and a counter in the lower half.
  var id: Int64
  var path: String

  var instance: Int32 { Int32(truncatingIfNeeded: id >> 32) }

  /// - Parameter folder: the prefix of `path`, without a trailing slash.
  init(id: Int64, digest: [UInt8], format: ImageFormat?, below folder: String = "") {
    self.id = id
    let start = digest.prefix(4).reduce(0) { $0 << 8 | UInt64($1) }
    path = Self.path(of: id, below: folder, start: start, ending: format?.fileExtension ?? "bin")
  }

  /// The path of the temporary file that receives the bytes until they are complete.
  static func temporaryPath(id: Int64) -> String { path(of: id, below: "", start: nil, ending: "tmp") }

  /// - Parameter start: the first four bytes of the digest.
  private static func path(of id: Int64, below folder: String, start: UInt64?, ending: String) -> String {
    var (folder, ending) = (folder, ending)
    // Written into one buffer: every cache hit needs a path, and repeated appending to a string takes longer.
    return String(unsafeUninitializedCapacity: folder.utf8.count + ending.utf8.count + 30) { text in
      var rest = text[...]
      if !folder.isEmpty {
        folder.withUTF8 { rest.write($0) }
        rest.write(UInt8(ascii: "/"))
      }
      rest.write(hexadecimal: UInt64(id & 0xff), digits: 2)
      rest.write(UInt8(ascii: "/"))
      rest.write(hexadecimal: UInt64(bitPattern: id), digits: 16)
      if let start {
        rest.write(UInt8(ascii: "-"))
        rest.write(hexadecimal: start, digits: 8)
      }
      rest.write(UInt8(ascii: "."))
      ending.withUTF8 { rest.write($0) }
      return rest.startIndex
    }
  }

  /// Two hexadecimal digits of the counter, which spreads files evenly.
  static func shard(of id: Int64) -> String { hexadecimal(UInt64(id & 0xff), digits: 2) }

  /// Parses the name of a file in a shard. Nil for a name that the store does not generate.
  static func parse(_ name: String) -> (id: Int64, isTemporary: Bool)? {
    let name = Array(name.utf8)
    guard name.count > 16, let id = number(name[..<16]), id >= 0 else { return nil }
    let rest = name[16...]
    if rest.elementsEqual(".tmp".utf8) { return (id, true) }
    guard rest.first == UInt8(ascii: "-"), rest.count > 10, number(rest.dropFirst().prefix(8)) != nil,
      rest.dropFirst(9).first == UInt8(ascii: "."),
      knownExtensions.contains(String(decoding: rest.dropFirst(10), as: UTF8.self))
    else { return nil }
    return (id, false)
  }

  private static let knownExtensions = ImageFormat.allCases.map(\.fileExtension) + ["bin"]

  private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
    var value: UInt64 = 0
    for digit in digits {
      switch digit {
      case 48...57: value = value << 4 | UInt64(digit - 48)
      case 97...102: value = value << 4 | UInt64(digit - 87)
      default: return nil
      }
    }
    return Int64(bitPattern: value)
  }
}

/// The unwritten remainder of a buffer.
extension Slice where Base == UnsafeMutableBufferPointer<UInt8> {
  mutating func write(_ byte: UInt8) {
    self[startIndex] = byte
    self = dropFirst()
  }

  mutating func write(_ text: UnsafeBufferPointer<UInt8>) {
    self = self[initialize(fromContentsOf: text)...]
  }

  /// Writes the lowest `digits` hexadecimal digits of `value`, in lower case.
  fileprivate mutating func write(hexadecimal value: UInt64, digits: Int) {
    precondition(digits <= count)
    writeHexadecimal(value, digits: digits, to: base.baseAddress! + startIndex)
    self = dropFirst(digits)
  }
}
