internal import ImageCodec

/// Decodes JPEGs that are cut, resized and turned only, without libvips. The result is that of the other decoder, byte
/// for byte. Most images are such JPEGs, and a process with the 140 libraries of libvips takes longer to fork than a
/// small one to decode.
enum PlainJPEG {
  static let formats = CodecFormats(decode: [.jpeg], encode: [.jpeg])

  static func reply(to request: CodecRequest, _ file: InputFile, _ output: OutputFile?) -> CodecReply {
    do {
      return try decode(request, file, output).map { .done($0) } ?? .needs(.common)
    } catch {
      return .failed(DecodeError(error))
    }
  }

  /// Nil if the request or the image needs other libraries.
  private static func decode(_ request: CodecRequest, _ file: InputFile, _ output: OutputFile?) throws -> Decoded? {
    guard request.isForPlainJPEG else { return nil }
    try JPEGScreening.check(file.bytes)
    let reader = try JPEGReader(file.bytes, isStrict: request.output == .check)
    guard reader.isPlain else { return nil }
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
      if request.output == .encoded { try geometry.check(for: .jpeg) }
      guard let rows = try rows(of: reader, request, geometry) else { return nil }
      (decoded.width, decoded.height) = (geometry.width, geometry.height)
      try write(rows, of: request, to: output, &decoded)
    }
    decoded.isDamaged = reader.isDamaged
    return decoded
  }

  private static func write(
    _ rows: PixelRows, of request: CodecRequest, to output: OutputFile?, _ decoded: inout Decoded
  ) throws {
    if request.output == .pixels {
      try rows.forEach { try output?.add($0) }
      try output?.flush()
      (decoded.channels, decoded.bytes) = (rows.bands, rows.width * rows.height * rows.bands)
    } else {
      let quality = request.transform.quality ?? ImageFormat.jpeg.usualQuality
      let writer = try JPEGWriter(width: rows.width, height: rows.height, bands: rows.bands, quality: quality)
      try rows.forEach { try writer.write($0) }
      let encoded = try writer.finish()
      try output?.write(encoded.bytes)
      (decoded.format, decoded.frames, decoded.bytes) = (.jpeg, 1, encoded.bytes.count)
    }
  }

  /// The pixels of the result. Nil if resizing takes much memory.
  private static func rows(of reader: JPEGReader, _ request: CodecRequest, _ geometry: Geometry) throws -> PixelRows? {
    let stored = StoredLayout(geometry, of: .jpeg, size: reader.size, orientation: request.orientation)
    let part = Transform.Crop(x: -geometry.x, y: -geometry.y, width: geometry.width, height: geometry.height)
    guard stored.isScaled else {
      return try PixelRows(reader, stored.crop).oriented(request.orientation).cut(part)
    }
    guard stored.needsLittleMemory else { return nil }
    let size = (width: stored.scaledWidth, height: stored.scaledHeight)
    let resampler = try reader.resampled(stored.crop, shrink: stored.shrink, to: size)
    return try PixelRows(resampler, size: size).oriented(request.orientation).cut(part)
  }
}
