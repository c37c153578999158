internal import ImageCodec

/// Decodes JPEGs, PNGs and still WebPs that are only cut, resized and turned, without libvips. The result is that of
/// the other decoder, byte for byte. Most images are such, and a process with the 140 libraries of libvips takes longer
/// to fork than a small one to decode.
enum PlainImage {
  static let formats = CodecFormats(decode: [.jpeg, .png, .webp], encode: [.jpeg, .png, .webp])

  static func reply(to request: CodecRequest, _ file: InputFile, _ output: OutputFile?) -> CodecReply {
    do {
      return try decode(request, file, output).map { .done($0) } ?? .needs(.common)
    } catch {
      return .failed(DecodeError(error))
    }
  }

  /// Nil if the request or the image needs other libraries.
  private static func decode(_ request: CodecRequest, _ file: InputFile, _ output: OutputFile?) throws -> Decoded? {
    guard request.isForPlainImage, let reader = try reader(request, file.bytes) else { return nil }
    let limit = PixelLimit(request)
    let (width, height) = reader.size
    try limit.check(width: width, height: height)
    var decoded = Decoded()
    let isTurned = request.orientation >= 5
    (decoded.sourceWidth, decoded.sourceHeight) = isTurned ? (height, width) : (width, height)
    switch request.output {
    case .check: try reader.readAll()
    case .pixels:
      let picture = try PlainPicture(request, of: reader.size, limit)
      guard var rows = try picture.scaled(by: reader).map(picture.finished) else { return nil }
      guard try addPlaceholder(of: &rows, request, to: &decoded), try write(rows, to: output, &decoded) else {
        return nil
      }
      (decoded.width, decoded.height) = (picture.geometry.width, picture.geometry.height)
    case .renditions(let parts, _, _):
      guard try writeRenditions(parts, request, file, by: reader, output, &decoded) else { return nil }
    case .placeholder:
      let small = try PlainPicture(request.forPlaceholder, of: reader.size, limit)
      guard let rows = try small.scaled(by: reader).map(small.finished), !small.isFlattened(rows),
        let placeholder = try Placeholder(of: rows)
      else { return nil }
      decoded.placeholder = placeholder
    default:
      let picture = try PlainPicture(request, of: reader.size, limit)
      guard try picture.canBeFile(of: file.bytes), var rows = try picture.scaled(by: reader).map(picture.finished),
        !(request.wantsPlaceholder && picture.isFlattened(rows)),
        try addPlaceholder(of: &rows, request, to: &decoded),
        let encoded = try encode(rows, of: picture, picture.exif(of: file.bytes), quality: request.transform.quality)
      else { return nil }
      try output?.write(encoded.bytes)
      (decoded.width, decoded.height) = (picture.geometry.width, picture.geometry.height)
      (decoded.format, decoded.frames, decoded.bytes) = (picture.format, 1, encoded.bytes.count)
    }
    if reader.isDamaged { decoded.notes.insert(.damaged) }
    if request.format == .jpeg, JPEGScreening.hasGainMap(file.bytes) { decoded.notes.insert(.gainMap) }
    return decoded
  }

  /// Adds the placeholder of a result, if it is wanted. False if it needs other libraries.
  private static func addPlaceholder(
    of rows: inout PixelRows, _ request: CodecRequest, to decoded: inout Decoded
  ) throws -> Bool {
    guard request.wantsPlaceholder else { return true }
    // In memory, because both outputs read it.
    rows = try rows.inMemory()
    decoded.placeholder = try Placeholder(of: rows)
    return decoded.placeholder != nil
  }

  /// Writes the files of a set. False if one needs other libraries.
  private static func writeRenditions(
    _ parts: [CodecRequest.Part], _ request: CodecRequest, _ file: InputFile, by reader: any PlainReader,
    _ output: OutputFile?, _ decoded: inout Decoded
  ) throws -> Bool {
    let limit = PixelLimit(request)
    /// Nil for a stripped file.
    var pictures: [PlainPicture?] = try request.parts.enumerated().map { index, request in
      if parts[index].rendition.isStripped { return nil }
      return try makeRendition(index, of: parts.count) { try PlainPicture(request, of: reader.size, limit) }
    }
    // The placeholder is made like a last file.
    if request.wantsPlaceholder { pictures.append(try PlainPicture(request.forPlaceholder, of: reader.size, limit)) }
    var next: (any PlainReader)? = reader
    var scaled: [Int: PixelRows] = [:]
    var files: [Int: (file: EncodedFile, quality: Int?)] = [:]
    for step in Cascade(pictures.map { $0?.layout }).steps {
      let isMade = try makeRendition(step.index, of: parts.count) {
        guard let picture = pictures[step.index] else {
          let part = parts[step.index]
          files[step.index] = (
            try part.rendition.stripped(file.bytes, request.format, orientation: part.orientation), nil
          )
          return true
        }
        let isFile = step.index < parts.count
        if isFile, !(try picture.canBeFile(of: file.bytes)) { return false }
        var rows: PixelRows?
        if let parent = step.parent {
          rows = try scaled[parent]?.resized(toWidth: picture.layout.scaledWidth, height: picture.layout.scaledHeight)
        } else if let reader = try next.take() ?? self.reader(request, file.bytes) {
          rows = try picture.scaled(by: reader)
        }
        guard var rows else { return false }
        if step.isParent {
          rows = try rows.inMemory()
          scaled[step.index] = rows
        }
        let finished = try picture.finished(rows)
        guard isFile else {
          decoded.placeholder = picture.isFlattened(finished) ? nil : try Placeholder(of: finished)
          return decoded.placeholder != nil
        }
        if let same = parts.part(like: step.index, among: files.keys, geometry: { pictures[$0]?.geometry }) {
          files[step.index] = files[same]
          return true
        }
        files[step.index] = try encode(
          finished, of: picture, picture.exif(of: file.bytes), parts[step.index].rendition)
        return files[step.index] != nil
      }
      guard isMade else { return false }
    }
    for (index, picture) in pictures.prefix(parts.count).enumerated() {
      guard let (file, quality) = files[index] else { return false }
      try output?.write(file.bytes)
      decoded.bytes += file.bytes.count
      decoded.renditions.append(
        Decoded.File(
          bytes: file.bytes.count, format: picture?.format ?? request.format,
          width: picture?.geometry.width ?? reader.size.width, height: picture?.geometry.height ?? reader.size.height,
          frames: 1, quality: quality))
    }
    return true
  }

  private static func encode(
    _ rows: PixelRows, of picture: PlainPicture, _ exif: [UInt8], _ rendition: Rendition
  ) throws -> (file: EncodedFile, quality: Int?)? {
    guard let maxBytes = rendition.maxBytes else {
      return try encode(rows, of: picture, exif, quality: rendition.transform.quality).map { ($0, nil) }
    }
    // Encoded more than once.
    let kept = try rows.inMemory()
    return try rendition.encoded(picture.format, maxBytes, mayBeLossless: false) {
      try encode(kept, of: picture, exif, quality: $0)
    }
  }

  private static func encode(
    _ rows: PixelRows, of picture: PlainPicture, _ exif: [UInt8], quality: Int?
  ) throws -> EncodedFile? {
    try encode(rows, as: picture.format, picture.request.transform, quality: quality)?.with(exif: exif, picture.format)
  }

  /// Nil if the image has samples or frames that need other libraries.
  private static func reader(_ request: CodecRequest, _ file: UnsafeRawBufferPointer) throws -> (any PlainReader)? {
    let reader: any PlainReader
    switch request.format {
    case .jpeg:
      try JPEGScreening.check(file)
      reader = try JPEGReader(file, isStrict: request.output == .check)
    case .png: reader = try PNGReader(file)
    case .webp: reader = try WebPReader(file)
    default: return nil
    }
    return reader.isPlain ? reader : nil
  }

  /// False for pixels that must become colour.
  private static func write(_ rows: PixelRows, to output: OutputFile?, _ decoded: inout Decoded) throws -> Bool {
    guard rows.bands != 2 else { return false }
    try rows.forEach { try output?.add($0) }
    try output?.flush()
    (decoded.channels, decoded.bytes) = (rows.bands, rows.width * rows.height * rows.bands)
    return true
  }

  /// Nil for grey pixels on a background in colour, and for very large PNGs.
  private static func encode(
    _ rows: PixelRows, as format: ImageFormat, _ transform: Transform, quality: Int?
  ) throws -> EncodedFile? {
    if format == .png {
      guard let writer = try PNGWriter(width: rows.width, height: rows.height, bands: rows.bands) else { return nil }
      try rows.forEach { writer.write($0) }
      return try writer.finish()
    }
    let quality = quality ?? format.usualQuality
    if format == .webp {
      let writer = try WebPWriter(width: rows.width, height: rows.height, bands: rows.bands)
      try rows.forEach { writer.write($0) }
      return try writer.finish(quality: quality)
    }
    let (background, bands) = (transform.background, rows.bands - (rows.bands.isMultiple(of: 2) ? 1 : 0))
    if rows.bands == 2, Set([background >> 16 & 255, background >> 8 & 255, background & 255]).count > 1 { return nil }
    let writer = try JPEGWriter(width: rows.width, height: rows.height, bands: bands, quality: quality)
    try rows.forEachOpaque(on: background) { try writer.write($0) }
    return try writer.finish()
  }
}

/// A picture that a request asks for.
private struct PlainPicture {
  let request: CodecRequest
  let geometry: Geometry
  let layout: StoredLayout
  var format: ImageFormat { request.transform.format ?? request.format }

  /// - Parameter size: that of the image as it is stored.
  init(_ request: CodecRequest, of size: (width: Int, height: Int), _ limit: PixelLimit) throws {
    self.request = request
    let isTurned = request.orientation >= 5
    geometry = try limit.geometry(
      request.transform, width: isTurned ? size.height : size.width, height: isTurned ? size.width : size.height)
    layout = StoredLayout(geometry, of: request.format, size: size, orientation: request.orientation)
  }

  /// Throws if the format cannot hold the picture. False if the file needs other libraries: artwork may become lossless.
  func canBeFile(of source: UnsafeRawBufferPointer) throws -> Bool {
    try geometry.check(for: format)
    let isPalette = request.format == .png && PNGReader.hasPalette(source)
    return !(format == .webp && isPalette && geometry.keepsPixels && request.transform.quality == nil)
  }

  /// The EXIF data of the file: the fields that it keeps. Empty without any.
  func exif(of source: UnsafeRawBufferPointer) -> [UInt8] {
    let kept = request.transform.metadata
    if kept.isEmpty { return [] }
    return EXIFWriter.data(EXIFReader.read(file: source, request.format).filter { kept.contains($0.key) })
  }

  /// The requested part in its final size, as it is stored. Nil if resizing takes much memory.
  func scaled(by reader: some PlainReader) throws -> PixelRows? {
    let profile = reader.profile
    let rows: PixelRows
    if layout.isScaled {
      guard layout.needsLittleMemory else { return nil }
      let whole = Transform.Crop(x: 0, y: 0, width: layout.scaledWidth, height: layout.scaledHeight)
      rows = PixelRows(ResampledReader(reader: reader, layout: layout), whole)
    } else {
      rows = PixelRows(reader, layout.crop)
    }
    return rows.inSRGB(from: profile)
  }

  /// Whether the format has no alpha and the pixels have.
  func isFlattened(_ rows: PixelRows) -> Bool { format == .jpeg && rows.bands.isMultiple(of: 2) }

  /// Upright and cut.
  func finished(_ rows: PixelRows) throws -> PixelRows {
    let part = Transform.Crop(x: -geometry.x, y: -geometry.y, width: geometry.width, height: geometry.height)
    return try rows.oriented(request.orientation).cut(part)
  }
}

extension CodecRequest {
  /// The request for the picture of the placeholder.
  fileprivate var forPlaceholder: CodecRequest {
    var request = self
    request.transform = transform.forPlaceholder
    return request
  }
}

extension Placeholder {
  /// Nil if resizing takes much memory.
  fileprivate init?(of rows: PixelRows) throws {
    let size = try ThumbHash.size(width: rows.width, height: rows.height)
    guard let small = try rows.resized(toWidth: size.width, height: size.height) else { return nil }
    try self.init(width: size.width, height: size.height, bands: small.bands) { try small.forEach($0) }
  }
}

/// Decodes an image that may be plain.
private protocol PlainReader: RowReader {
  /// Whether the image is one frame of bytes in grey or RGB, and possibly alpha.
  var isPlain: Bool { get }
  /// The ICC profile of the colours, until the image has been decoded. Nil for sRGB.
  var profile: [UInt8]? { get }
  /// Whether the data so far lacked something that has been replaced.
  var isDamaged: Bool { get }

  /// Passes the rows of a part of the image in another size.
  func resample(_ stored: StoredLayout, _ take: Resampler.Taker) throws
}

extension PlainReader {
  var isDamaged: Bool { false }
}

/// The image of a reader in another size.
private final class ResampledReader: RowReader {
  private let reader: any PlainReader
  private let layout: StoredLayout

  init(reader: any PlainReader, layout: StoredLayout) { (self.reader, self.layout) = (reader, layout) }

  var size: (width: Int, height: Int) { (layout.scaledWidth, layout.scaledHeight) }
  var storedBands: Int { reader.storedBands }

  func forEachRow(above end: Int, _ body: (Int, UnsafePointer<UInt8>) throws -> Void) throws {
    var index = 0
    try reader.resample(layout) { row in
      if index < end { try body(index, row.bindMemory(to: UInt8.self).baseAddress!) }
      index += 1
    }
  }
}

extension JPEGReader: PlainReader {
  fileprivate func resample(_ stored: StoredLayout, _ take: Resampler.Taker) throws {
    try resample(stored.crop, shrink: stored.shrink, to: (stored.scaledWidth, stored.scaledHeight), take)
  }
}

extension PNGReader: PlainReader {
  fileprivate func resample(_ stored: StoredLayout, _ take: Resampler.Taker) throws {
    let crop = stored.crop
    let resampler = Resampler(stored, of: crop, bands: storedBands)
    try forEachRow(above: crop.y + crop.height) { index, row in
      if index >= crop.y { try resampler.add(row + crop.x * storedBands, take) }
    }
  }
}

extension WebPReader: PlainReader {
  fileprivate var isPlain: Bool { !isAnimated }

  fileprivate func resample(_ stored: StoredLayout, _ take: Resampler.Taker) throws {
    let pixels = try pixels(shrink: stored.shrink)
    let (width, height) = reducedSize(stored.shrink)
    let area = stored.area(loadedWidth: width, loadedHeight: height)
    let resampler = Resampler(stored, of: area, bands: storedBands)
    for y in area.y..<(area.y + area.height) {
      try resampler.add(pixels.samples + (y * width + area.x) * storedBands, take)
    }
  }
}

extension Resampler {
  /// For an image with interleaved bands, of which a part is used.
  fileprivate convenience init(_ stored: StoredLayout, of part: Transform.Crop, bands: Int) {
    self.init(
      bands.isMultiple(of: 2) ? .alphaLast : .plain, count: bands, from: (part.width, part.height),
      to: (stored.scaledWidth, stored.scaledHeight))
  }
}
