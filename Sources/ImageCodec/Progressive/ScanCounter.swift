internal import Platform

/// Counts the complete scans of a progressive JPEG (ITU-T T.81 annex B) while its bytes arrive in pieces.
///
/// The content of segments, such as a thumbnail, is skipped. A file that is not a JPEG or not progressive has no scans
/// to count: `isOver` is set as soon as that is known. A counter that finds the end of the image walks the scans of a
/// JPEG that is not progressive as well, and counts them.
public struct ScanCounter: Sendable {
  /// The number of complete scans. Never decreases.
  public private(set) var completeScans = 0
  /// The offset at which the last complete scan ends. The bytes up to there plus an end-of-image marker are a JPEG.
  public private(set) var endOfScans = 0
  /// Whether nothing more can be counted.
  public private(set) var isOver = false

  private enum State {
    /// Before the first two bytes, which distinguish other formats.
    case start, restOfStart
    /// Before the byte 0xFF of a marker.
    case betweenSegments
    /// After the byte 0xFF.
    case marker
    /// After the marker, and after the first byte of its length.
    case length
    case restOfLength(Int)
    /// Within a segment that has this many bytes left.
    case segment(Int)
    /// In the entropy-coded data of a scan, and after a 0xFF in it.
    case scan
    case markerInScan
  }

  private var state = State.start
  /// The number of bytes consumed before.
  private var taken = 0
  private var marker: UInt8 = 0
  private var isProgressive = false
  private let findsEnd: Bool

  /// - Parameter findsEnd: whether `isOver` waits for the end of image, unless it cannot be found.
  public init(findsEnd: Bool = false) { self.findsEnd = findsEnd }

  /// Consumes the next bytes of the file.
  public mutating func consume(_ bytes: UnsafeRawBufferPointer) {
    defer { taken += bytes.count }
    var position = 0
    while position < bytes.count, !isOver {
      let byte = bytes[position]
      switch state {
      case .start:
        isOver = byte != 0xFF
        state = .restOfStart
      case .restOfStart:
        isOver = byte != 0xD8
        state = .betweenSegments
      case .segment(let left):
        let skipped = min(left, bytes.count - position)
        position += skipped
        state = skipped < left ? .segment(left - skipped) : marker == Self.startOfScan ? .scan : .betweenSegments
        continue
      case .scan:
        guard let found = memchr(bytes.baseAddress! + position, 0xFF, bytes.count - position) else { return }
        position = UnsafeRawPointer(found) - bytes.baseAddress!
        state = .markerInScan
      case .markerInScan:
        switch byte {
        case 0xFF: break  // a fill byte
        case 0, 0xD0...0xD7: state = .scan  // a stuffed byte, a restart marker
        default:
          completeScans += 1
          endOfScans = taken + position - 1
          begin(byte)
        }
      case .betweenSegments:
        if byte == 0xFF { state = .marker }
      case .marker:
        if byte == 0 { state = .betweenSegments } else if byte != 0xFF { begin(byte) }
      case .length: state = .restOfLength(Int(byte) << 8)
      case .restOfLength(let high):
        let length = high | Int(byte)
        if length < 2 { isOver = true }
        state = length > 2 ? .segment(length - 2) : marker == Self.startOfScan ? .scan : .betweenSegments
      }
      position += 1
    }
  }

  private static let startOfScan: UInt8 = 0xDA

  private mutating func begin(_ marker: UInt8) {
    self.marker = marker
    switch marker {
    case 0x01, 0xD0...0xD8: state = .betweenSegments  // no segment follows
    // The end of image, or a marker that no coding here has: that of JPEG-LS has other data behind it.
    case 0xD9, 0x02...0xBF, 0xF0...0xFD: isOver = true
    case Self.startOfScan where !isProgressive && !findsEnd: isOver = true
    default:
      // The frame headers of progressive JPEGs: with Huffman or arithmetic coding, each also in hierarchies.
      if [0xC2, 0xC6, 0xCA, 0xCE].contains(marker) { isProgressive = true }
      state = .length
    }
  }
}
