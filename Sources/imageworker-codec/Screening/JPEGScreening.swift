internal import Platform

/// Looks through the markers of a JPEG before libjpeg does (ITU-T T.81 annex B).
///
/// Not by `ScanCounter`, which follows a JPEG as it arrives and gives up on what no preview can come of.
enum JPEGScreening {
  private static let (startOfScan, endOfImage): (UInt8, UInt8) = (0xDA, 0xD9)

  /// How many scans libjpeg may come to, whatever the frame says of them: it decodes each, also of a sequential JPEG. A
  /// length that is too small for itself is passed over, as libjpeg does.
  static func scans(in file: UnsafeRawBufferPointer) -> Int {
    var scans = 0
    var position = 2
    while let marker = nextMarker(in: file, from: &position), marker != endOfImage {
      // These stand alone, or are no markers.
      if marker <= 0x01 || (0xD0...0xD8).contains(marker) { continue }
      guard file.count - position >= 2 else { break }
      position += max(2, Int(file[position]) << 8 | Int(file[position + 1]))
      if marker == startOfScan { scans += 1 }
    }
    return scans
  }

  /// The byte behind the next 0xFF that is no fill. In a scan's data it is 0, or a restart.
  private static func nextMarker(in file: UnsafeRawBufferPointer, from position: inout Int) -> UInt8? {
    guard position < file.count,
      let found = memchr(file.baseAddress! + position, 0xFF, file.count - position)
    else { return nil }
    position = UnsafeRawPointer(found) - file.baseAddress!
    while position < file.count, file[position] == 0xFF { position += 1 }
    guard position < file.count else { return nil }
    defer { position += 1 }
    return file[position]
  }
}
