/// Walks the structure of an image while its bytes arrive in pieces, to tell whether the file is cut.
///
/// A file counts as whole unless its format proves that bytes are missing: a JPEG without end of image, a PNG without
/// IEND, a GIF without trailer, a WebP that is shorter than its header says, a known top-level box beyond the end of an
/// AVIF, HEIC, JPEG XL or JPEG 2000 file. Bytes after the end, and a structure that is not understood, are no proof.
public struct TruncationScan: Sendable {
  /// A field of the structure.
  private enum Field {
    case end, pngChunk, gifScreen, gifBlock, gifFrame, gifData, riff, box, longBox

    /// The number of bytes.
    var length: Int {
      switch self {
      case .end: 0
      case .gifBlock, .gifData: 1
      case .pngChunk, .box, .longBox: 8
      case .gifFrame: 9
      case .riff: 12
      case .gifScreen: 13
      }
    }
  }

  private static let boxes: Set<FourCC> = [
    "ftyp", "meta", "mini", "moov", "mdat", "idat", "free", "skip", "uuid", "JXL ", "jxlc", "jxlp", "jxll", "jbrd",
    "brob", "Exif", "xml ", "jumb", "jP  ", "jp2h", "jp2c",
  ]

  private var next: Field
  /// The bytes of `next` that have arrived.
  private var field: [UInt8] = []
  /// The number of bytes before `next`.
  private var skipped: UInt64 = 0
  /// Whether the end has been found, or cannot be found.
  private var isOver = false
  /// Walks a JPEG, in place of the fields.
  private var jpeg: ScanCounter?

  /// Nil for a format that does not tell its end.
  public init?(_ format: ImageFormat) {
    next = .end
    switch format {
    case .jpeg: jpeg = ScanCounter(findsEnd: true)
    case .png: (next, skipped) = (.pngChunk, 8)
    case .gif: next = .gifScreen
    case .webp: next = .riff
    case .avif, .heic, .jxl, .jp2: next = .box
    case .tiff, .bmp, .ico, .svg: return nil
    }
  }

  /// Whether the file is cut, if the bytes so far are all.
  public var isCut: Bool {
    if let jpeg { return !jpeg.isOver }
    return !isOver && (next != .box || skipped > 0)
  }

  /// Consumes the next bytes of the file.
  public mutating func consume(_ bytes: UnsafeRawBufferPointer) {
    if jpeg?.consume(bytes) != nil { return }
    var rest = bytes[...]
    while !isOver {
      let passed = Int(min(skipped, UInt64(rest.count)))
      rest = rest.dropFirst(passed)
      skipped -= UInt64(passed)
      guard skipped == 0 else { return }
      let missing = rest.prefix(next.length - field.count)
      field.append(contentsOf: missing)
      rest = rest.dropFirst(missing.count)
      guard field.count == next.length else { return }
      pass()
      field.removeAll(keepingCapacity: true)
    }
  }

  /// Decides what follows a complete field.
  private mutating func pass() {
    switch next {
    case .end: isOver = true
    case .pngChunk:
      let isChunk = field[4...].allSatisfy { 0x41...0x5A ~= $0 & 0xDF } && field[0] < 0x80
      isOver = !isChunk || name == "IEND"
      skip(big(0..<4) + 4, to: .pngChunk)
    case .gifScreen: skip(colors(field[10]), to: .gifBlock)
    case .gifFrame: skip(colors(field[8]) + 1, to: .gifData)
    case .gifBlock:
      switch field[0] {
      case 0x21: skip(1, to: .gifData)
      case 0x2C: skip(0, to: .gifFrame)
      default: isOver = true
      }
    case .gifData: skip(UInt64(field[0]), to: field[0] == 0 ? .gifBlock : .gifData)
    case .riff:
      let size = field[4..<8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
      // The largest sizes mean that the writer did not know it.
      isOver = size < 4 || size > 0xFFFF_FFF6
      skip(size &- 4, to: .end)
    case .box:
      let size = big(0..<4)
      if size == 1, Self.boxes.contains(name) { return skip(0, to: .longBox) }
      // A box of length 0 extends to the end of the file.
      isOver = size < 8 || !Self.boxes.contains(name)
      skip(size &- 8, to: .box)
    case .longBox:
      isOver = big(0..<8) < 16
      skip(big(0..<8) &- 16, to: .box)
    }
  }

  private mutating func skip(_ count: UInt64, to field: Field) { (skipped, next) = (count, field) }

  private var name: FourCC { FourCC(field[4..<8]) }

  private func big(_ range: Range<Int>) -> UInt64 { field[range].reduce(0) { $0 << 8 | UInt64($1) } }

  /// The length of a GIF's colour table.
  private func colors(_ flags: UInt8) -> UInt64 { UInt64(GIFScan.colorTableLength(Int(flags))) }
}
