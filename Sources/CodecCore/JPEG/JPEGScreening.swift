package import ImageCodec
internal import Platform

/// Checks the markers of a JPEG before libjpeg reads it (ITU-T T.81 annex B).
///
/// `ScanCounter` is not used, because it follows a JPEG that still arrives and stops at files that have no preview.
package enum JPEGScreening {
  static let (startOfScan, endOfImage): (UInt8, UInt8) = (0xDA, 0xD9)

  /// The maximum number of scans. Each scan passes over all pixels and may have only a few bytes. Encoders write about
  /// ten.
  private static let maxScans = 100

  /// Throws if decoding would take long despite few pixels.
  package static func check(_ file: UnsafeRawBufferPointer) throws(DecodeError) {
    if scans(in: file) > maxScans { throw .corrupt("the JPEG has more than \(maxScans) scans") }
  }

  /// The maximum number of scans that libjpeg may find, whatever the frame header says: it decodes each, even in a
  /// sequential JPEG. A segment length below 2 is skipped, as in libjpeg.
  private static func scans(in file: UnsafeRawBufferPointer) -> Int {
    var scans = 0
    forEachSegment(of: file) { marker, _ in
      if marker == startOfScan { scans += 1 }
      return true
    }
    return scans
  }

  /// Whether the image announces a gain map before its pixels: by ISO 21496-1, or by the XMP of Ultra HDR.
  package static func hasGainMap(_ file: UnsafeRawBufferPointer) -> Bool {
    var hasGainMap = false
    forEachSegment(of: file) { marker, content in
      switch marker {
      case 0xE2: hasGainMap = content.starts(with: isoGainMap)
      case 0xE1: hasGainMap = content.starts(with: xmp) && content.has(ultraHDR)
      default: break
      }
      return marker != startOfScan && !hasGainMap
    }
    return hasGainMap
  }

  private static let isoGainMap = "urn:iso:std:iso:ts:21496:-1".utf8
  private static let xmp = "http://ns.adobe.com/xap/1.0/".utf8
  private static let ultraHDR = "hdrgm:Version".utf8

  /// Passes the marker and the content of each segment, until the body returns false.
  private static func forEachSegment(
    of file: UnsafeRawBufferPointer, _ body: (UInt8, Slice<UnsafeRawBufferPointer>) -> Bool
  ) {
    var position = 2
    while let marker = nextMarker(in: file, from: &position), marker != endOfImage {
      // Markers without a segment, or bytes that are not markers.
      if marker <= 0x01 || (0xD0...0xD8).contains(marker) { continue }
      guard file.count - position >= 2 else { return }
      let end = position + max(2, Int(file[position]) << 8 | Int(file[position + 1]))
      guard body(marker, file[min(position + 2, file.count)..<min(end, file.count)]) else { return }
      position = end
    }
  }

  /// The byte after the next 0xFF that is not fill. In a scan's data it is 0 or a restart marker.
  static func nextMarker(in file: UnsafeRawBufferPointer, from position: inout Int) -> UInt8? {
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
