/// All entries of a directory, for tags of any type (TIFF 6.0 section 2; 13 and 16 to 18 are those of libtiff for
/// directories and BigTIFF, 129 is UTF-8 since EXIF 3.0).
extension TIFFDirectory {
  struct Entry {
    fileprivate let type: Int
    /// The number of values, at most 2^32 - 1.
    let count: Int
    /// The position of the first value.
    let place: Int
  }

  /// The most entries that are read. Cameras write about 60.
  private static let maxEntries = 1000

  /// The entries by their tags, of equal ones the first. Those with an unknown type are left out. The values may be
  /// beyond the end of the file.
  func entries(_ reader: inout HeaderReader) -> [Int: Entry] {
    var entries: [Int: Entry] = [:]
    do throws(ImageHeaderError) {
      for index in 0..<min(entryCount, Self.maxEntries) {
        let start = firstEntry + index * entryLength
        let tag = Int(try integer(&reader, start, bytes: 2))
        let type = Int(try integer(&reader, start + 2, bytes: 2))
        let count = Int(clamping: min(try integer(&reader, start + 4, bytes: isBig ? 8 : 4), UInt64(UInt32.max)))
        guard entries[tag] == nil, let length = Self.length(ofType: type) else { continue }
        var place = start + (isBig ? 12 : 8)
        if count * length > (isBig ? 8 : 4) {
          let number = try integer(&reader, place, bytes: isBig ? 8 : 4)
          place = fileStart + Int(min(number, UInt64(Int.max / 4)))
        }
        entries[tag] = Entry(type: type, count: count, place: place)
      }
    } catch {
      // The file ends within the directory.
    }
    return entries
  }

  /// Whether `entries` returns all entries that it can read.
  func isWhole(_ reader: HeaderReader) -> Bool {
    entryCount <= Self.maxEntries && firstEntry + entryCount * entryLength <= reader.count
  }

  /// The directory at an offset of the file.
  func directory(at offset: Int, _ reader: inout HeaderReader) throws(ImageHeaderError) -> TIFFDirectory {
    try TIFFDirectory(&reader, fileStart: fileStart, isLittleEndian: isLittleEndian, isBig: isBig, start: offset)
  }

  /// A value as a number; nil if it is of another type, not finite, or if there are not so many.
  func number(_ entry: Entry, _ index: Int, _ reader: inout HeaderReader) throws(ImageHeaderError) -> Double? {
    guard index < entry.count, let length = Self.length(ofType: entry.type) else { return nil }
    let place = entry.place + index * length
    switch entry.type {
    case 1, 3, 4, 13, 16, 18: return Double(try integer(&reader, place, bytes: length))
    case 5, 10:
      let (top, bottom) = (try integer(&reader, place, bytes: 4), try integer(&reader, place + 4, bytes: 4))
      func value(_ bits: UInt64) -> Double {
        entry.type == 5 ? Double(bits) : Double(Int32(truncatingIfNeeded: bits))
      }
      return bottom == 0 ? nil : value(top) / value(bottom)
    default: return nil
    }
  }

  /// The bytes of a text; nil if the entry is of another type.
  func bytes(
    _ entry: Entry, atMost limit: Int, _ reader: inout HeaderReader
  ) throws(ImageHeaderError) -> ArraySlice<UInt8>? {
    guard entry.type == 2 || entry.type == 129 else { return nil }
    return try reader.bytes(entry.place, count: min(entry.count, limit))[...]
  }

  private static func length(ofType type: Int) -> Int? {
    switch type {
    case 1, 2, 6, 7, 129: 1
    case 3, 8: 2
    case 4, 9, 11, 13: 4
    case 5, 10, 12, 16, 17, 18: 8
    default: nil
    }
  }
}
