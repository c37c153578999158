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
    if request.output == .check {
      try reader.readAll()
    } else {
      let geometry = try limit.geometry(
        request.transform, width: decoded.sourceWidth, height: decoded.sourceHeight)
      let format = request.transform.format ?? request.format
      if request.output == .encoded {
        try geometry.check(for: format)
        // Artwork may become lossless.
        let isPalette = request.format == .png && PNGReader.hasPalette(file.bytes)
        if format == .webp, isPalette, geometry.keepsPixels, request.transform.quality == nil { return nil }
      }
      guard let rows = try rows(of: reader, request, geometry) else { return nil }
      (decoded.width, decoded.height) = (geometry.width, geometry.height)
      if request.output == .pixels {
        guard try write(rows, to: output, &decoded) else { return nil }
      } else {
        guard let file = try encode(rows, as: format, request.transform) else { return nil }
        try output?.write(file.bytes)
        (decoded.format, decoded.frames, decoded.bytes) = (format, 1, file.bytes.count)
      }
    }
    if reader.isDamaged { decoded.notes.insert(.damaged) }
    if request.format == .jpeg, JPEGScreening.hasGainMap(file.bytes) { decoded.notes.insert(.gainMap) }
    return decoded
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
  private static func encode(_ rows: PixelRows, as format: ImageFormat, _ transform: Transform) throws -> EncodedFile? {
    if format == .png {
      guard let writer = try PNGWriter(width: rows.width, height: rows.height, bands: rows.bands) else { return nil }
      try rows.forEach { writer.write($0) }
      return try writer.finish()
    }
    let quality = transform.quality ?? format.usualQuality
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

  /// The pixels of the result. Nil if resizing takes much memory.
  private static func rows(
    of reader: some PlainReader, _ request: CodecRequest, _ geometry: Geometry
  ) throws -> PixelRows? {
    let stored = StoredLayout(geometry, of: request.format, size: reader.size, orientation: request.orientation)
    let part = Transform.Crop(x: -geometry.x, y: -geometry.y, width: geometry.width, height: geometry.height)
    let profile = reader.profile
    let rows: PixelRows
    if stored.isScaled {
      guard stored.needsLittleMemory else { return nil }
      rows = PixelRows(try reader.resampled(stored), size: (stored.scaledWidth, stored.scaledHeight))
    } else {
      rows = PixelRows(reader, stored.crop)
    }
    return try rows.inSRGB(from: profile).oriented(request.orientation).cut(part)
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

  /// Decodes a part of the image in another size.
  func resampled(_ stored: StoredLayout) throws -> Resampler
}

extension PlainReader {
  var isDamaged: Bool { false }
}

extension JPEGReader: PlainReader {
  fileprivate func resampled(_ stored: StoredLayout) throws -> Resampler {
    try resampled(stored.crop, shrink: stored.shrink, to: (stored.scaledWidth, stored.scaledHeight))
  }
}

extension PNGReader: PlainReader {
  fileprivate func resampled(_ stored: StoredLayout) throws -> Resampler {
    let crop = stored.crop
    let resampler = Resampler(stored, of: crop, bands: storedBands)
    try forEachRow(above: crop.y + crop.height) { index, row in
      if index >= crop.y { resampler.add(row + crop.x * storedBands) }
    }
    return resampler
  }
}

extension WebPReader: PlainReader {
  fileprivate var isPlain: Bool { !isAnimated }

  fileprivate func resampled(_ stored: StoredLayout) throws -> Resampler {
    let pixels = try pixels(shrink: stored.shrink)
    let (width, height) = reducedSize(stored.shrink)
    let area = stored.area(loadedWidth: width, loadedHeight: height)
    let resampler = Resampler(stored, of: area, bands: storedBands)
    for y in area.y..<(area.y + area.height) { resampler.add(pixels.samples + (y * width + area.x) * storedBands) }
    return resampler
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
