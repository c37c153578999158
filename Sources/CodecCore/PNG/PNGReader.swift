internal import CDeflate
package import ImageCodec
internal import Platform

/// Decodes a PNG (PNG, third edition). The image data is inflated once, and only as far as the pixels need; browsers
/// do not read what follows either.
package final class PNGReader: RowReader {
  /// A part of the image data, with the bytes of which its checksum is.
  package typealias Piece = APNGScan.Chunk

  package let size: (width: Int, height: Int)
  /// Whether the opacities or the profile of the file are damaged. They are then ignored, as in browsers.
  package private(set) var isDamaged = false
  private let file: UnsafeRawBufferPointer
  private let samples: PNGSamples
  private let isInterlaced: Bool
  private let pieces: [Piece]
  /// The rest of the rows, once the first has been read.
  private var rows: PNGRows?
  /// All pixels of an interlaced image.
  private var canvas: PixelMemory?
  /// A row of pixels, unless the file stores them as they are needed.
  private var converted: PixelMemory?
  private var next = 0

  /// - Parameters:
  ///   - file: the whole file, which must outlive the reader.
  ///   - frame: a frame of an animation to be decoded instead of the image.
  package init(_ file: UnsafeRawBufferPointer, frame: APNGScan.Frame? = nil) throws(DecodeError) {
    guard file.count >= 33, PNGHeader.exists(color: Int(file[25]), depth: Int(file[24])), file[26] == 0, file[27] == 0,
      file[28] < 2
    else { throw .corrupt("the header of the PNG is invalid") }
    self.file = file
    isInterlaced = file[28] == 1
    var (palette, transparency): (UnsafeRawBufferPointer?, UnsafeRawBufferPointer?)
    var pieces: [Piece] = []
    for chunk in PNGChunks(file) {
      let isData = chunk.name == PNGChunks.imageData
      if !chunk.isWhole, !isData, pieces.isEmpty { throw .corrupt("a chunk of the PNG is longer than the file") }
      let content = UnsafeRawBufferPointer(rebasing: file[chunk.content])
      switch chunk.name {
      case PNGChunks.imageData where frame == nil: pieces.append(Piece(checked: chunk.checked, content: chunk.content))
      case PNGChunks.palette where palette == nil && pieces.isEmpty:
        guard file.isIntact(chunk.checked) else { throw .corrupt("the checksum of the PNG's palette is wrong") }
        palette = content
      case PNGChunks.transparency where pieces.isEmpty && !file.isIntact(chunk.checked),
        PNGChunks.profile where pieces.isEmpty && !file.isIntact(chunk.checked):
        isDamaged = true
      case PNGChunks.transparency where transparency == nil && pieces.isEmpty:
        // The opacities of a palette must follow it.
        if file[25] != 3 || palette != nil { transparency = content }
      default: break
      }
      if isData, frame != nil { break }
    }
    samples = try PNGSamples(depth: Int(file[24]), color: Int(file[25]), palette, transparency)
    size = frame.map { ($0.width, $0.height) } ?? (Int(file.bigEndian(at: 16)), Int(file.bigEndian(at: 20)))
    self.pieces = frame?.chunks ?? pieces
  }

  /// The bands of the pixels: grey, grey with alpha, R G B or R G B with alpha.
  package var storedBands: Int { samples.bands }

  /// Whether samples are 16-bit numbers of the machine instead of bytes.
  package var isDeep: Bool { samples.isDeep }

  /// Whether the pixels of a PNG have a palette.
  package static func hasPalette(_ file: UnsafeRawBufferPointer) -> Bool { file.count >= 33 && file[25] == 3 }

  /// Whether the image is one frame of bytes, without high dynamic range.
  var isPlain: Bool {
    let header = PNGChunks(file).prefix { $0.name != PNGChunks.imageData }
    guard !isDeep, !header.contains(where: { $0.name == PNGChunks.animation }) else { return false }
    return PNGColors(of: file).hdr == nil
  }

  /// The next row from the top. It is valid until the next call.
  package func nextRow() throws(LibraryError) -> UnsafePointer<UInt8> {
    defer { next += 1 }
    if isInterlaced {
      if canvas == nil { canvas = try interlaced() }
      return UnsafePointer(canvas!.samples + next * size.width * samples.pixelSize)
    }
    if rows == nil { rows = try start([(size.width, size.height)]) }
    return try row(of: rows!, size.width, isFirst: next == 0)
  }

  /// The pixels of the next row of the image data.
  private func row(of rows: PNGRows, _ width: Int, isFirst: Bool) throws(LibraryError) -> UnsafePointer<UInt8> {
    let row = try rows.next(samples.length(of: width), isFirst: isFirst)
    guard !samples.arePixels else { return row }
    if converted == nil { converted = try PixelMemory(size.width * samples.pixelSize + 1) }
    samples.convert(row, width, into: converted!.samples)
    return UnsafePointer(converted!.samples)
  }

  /// - Parameter parts: the sizes of the images that follow one another in the data.
  private func start(_ parts: [(width: Int, height: Int)]) throws(LibraryError) -> PNGRows {
    var length = 0
    for part in parts {
      let (bytes, overflow) = (samples.length(of: part.width) + 1).multipliedReportingOverflow(by: part.height)
      guard !overflow, bytes < 1 << 48 else { throw LibraryError("out of memory") }
      length += bytes
    }
    // More data than this inflates to almost nothing, and could be slow all the same.
    guard pieces.reduce(0, { $0 + $1.content.count }) <= 2 * length + 16384 else {
      throw LibraryError("the PNG has data beyond its pixels")
    }
    for piece in pieces where !file.isIntact(piece.checked) {
      throw LibraryError("the checksum of the image data is wrong, or the file is truncated")
    }
    return try PNGRows(
      file, pieces.map(\.content), length: length, longest: samples.length(of: size.width),
      pixel: samples.storedPixelSize)
  }

  package func forEachRow(above end: Int, _ body: (Int, UnsafePointer<UInt8>) throws -> Void) throws {
    for index in 0..<end { try body(index, try nextRow()) }
  }

  /// Decodes the seven passes (section 8).
  private func interlaced() throws(LibraryError) -> PixelMemory {
    let passes = PNGPass.all.map { ($0, $0.columns(of: size.width), $0.rows(of: size.height)) }
      // A pass without pixels has no rows.
      .filter { $0.1 > 0 && $0.2 > 0 }
    let rows = try start(passes.map { ($0.1, $0.2) })
    let pixel = samples.pixelSize
    let canvas = try PixelMemory(size.width * size.height * pixel)
    for (pass, columns, height) in passes {
      for index in 0..<height {
        let row = try row(of: rows, columns, isFirst: index == 0)
        var place = canvas.samples + ((pass.y + index * pass.everyY) * size.width + pass.x) * pixel
        for column in 0..<columns {
          for byte in 0..<pixel { place[byte] = row[column * pixel + byte] }
          place += pass.everyX * pixel
        }
      }
    }
    return canvas
  }

  /// The profile of the colours, as the file declares them. Nil for sRGB.
  package var profile: [UInt8]? {
    let profile = embeddedProfile
    return switch PNGColors(of: file).change(hasProfile: profile != nil) {
    case .none: profile
    case .removal: nil
    case .replacement(let chromaticities, let transfer): ICCProfile.display(chromaticities, transfer)
    }
  }

  /// The ICC profile of the file. Nil if there is none, or if its chunk is damaged.
  private var embeddedProfile: [UInt8]? {
    guard let chunk = PNGChunks(file).first(where: { [PNGChunks.profile, PNGChunks.imageData].contains($0.name) }),
      chunk.name == PNGChunks.profile, file.isIntact(chunk.checked)
    else { return nil }
    // A name, its end, the number of the compression.
    let parts = file[chunk.content].split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0].count < 80, parts[1].first == 0 else { return nil }
    let data = UnsafeRawBufferPointer(rebasing: parts[1].dropFirst())
    var capacity = 1 << 16
    while capacity <= Self.maxProfile {
      var length = 0
      var status = LIBDEFLATE_BAD_DATA
      let profile = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
        status = Deflate.inflate(data, into: UnsafeMutableRawBufferPointer(buffer), &length)
        count = status == LIBDEFLATE_SUCCESS ? length : 0
      }
      if status != LIBDEFLATE_INSUFFICIENT_SPACE { return status == LIBDEFLATE_SUCCESS ? profile : nil }
      capacity *= 8
    }
    return nil
  }

  private static let maxProfile = 1 << 25
}

/// A pass of an interlaced image.
private struct PNGPass {
  var (x, y): (Int, Int)
  var (everyX, everyY): (Int, Int)

  static let all = [
    PNGPass(x: 0, y: 0, everyX: 8, everyY: 8), PNGPass(x: 4, y: 0, everyX: 8, everyY: 8),
    PNGPass(x: 0, y: 4, everyX: 4, everyY: 8), PNGPass(x: 2, y: 0, everyX: 4, everyY: 4),
    PNGPass(x: 0, y: 2, everyX: 2, everyY: 4), PNGPass(x: 1, y: 0, everyX: 2, everyY: 2),
    PNGPass(x: 0, y: 1, everyX: 1, everyY: 2),
  ]

  func columns(of width: Int) -> Int { max(0, (width - x + everyX - 1) / everyX) }
  func rows(of height: Int) -> Int { max(0, (height - y + everyY - 1) / everyY) }
}

extension UnsafeRawBufferPointer {
  /// Whether a chunk's checksum follows these bytes.
  fileprivate func isIntact(_ checked: Range<Int>) -> Bool {
    guard checked.upperBound + 4 <= count else { return false }
    let bytes = UnsafeRawBufferPointer(rebasing: self[checked])
    return libdeflate_crc32(0, bytes.baseAddress, bytes.count) == bigEndian(at: checked.upperBound)
  }
}
