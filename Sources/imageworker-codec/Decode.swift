internal import CVips
internal import ImageCodec

/// One decode: from an input to what was asked for.
struct Decode {
  let request: CodecRequest
  let input: Input
  /// A new file, where there is something to write.
  let output: OutputFile?

  func run() throws(DecodeError) -> Decoded {
    do {
      return try perform()
    } catch let error as DecodeError {
      throw error
    } catch let error as LibraryError {
      throw error.message.contains("nsupported") ? .unsupportedFormat(error.message) : .corrupt(error.message)
    } catch {
      throw .io("\(error)")
    }
  }

  private func perform() throws -> Decoded {
    guard Library.formats.decode.contains(request.format) else {
      throw DecodeError.unsupportedFormat("the decoder does not read \(request.format.rawValue)")
    }
    let source = try Source(request: request, input: input)
    var decoded = Decoded()
    (decoded.sourceWidth, decoded.sourceHeight) = (source.orientedWidth, source.orientedHeight)
    switch request.output {
    case .placeholder: break
    case .check: try source.picture.forEachRows { _ in }
    case .pixels: try writePixels(of: source, into: &decoded)
    case .encoded: try writeFile(of: source, transform: request.transform, into: &decoded)
    case .preview(let maxSide): try writeFile(of: source, transform: .preview(maxSide), into: &decoded)
    }
    if request.wantsPlaceholder || request.output == .placeholder {
      decoded.placeholder = try Placeholder(of: source)
    }
    return decoded
  }

  private func writeFile(of source: Source, transform: Transform, into decoded: inout Decoded) throws {
    let frames = transform.frames == .all ? source.frames : 1
    let geometry = try source.geometry(transform)
    let format = transform.outputFormat(of: request.format, hasAlpha: source.hasAlpha(after: transform), frames: frames)
    guard Library.formats.encode.contains(format) else {
      throw DecodeError.unsupportedFormat("the decoder does not write \(format.rawValue)")
    }
    guard max(geometry.width, geometry.height) <= format.longestSide else {
      throw DecodeError.tooManyPixels("a side of the result is longer than \(format.longestSide) pixels")
    }
    let rendering = Rendering(source: source, transform: transform, geometry: geometry, keepsAlpha: format.holdsAlpha)
    let picture = frames > 1 ? try rendering.animation() : try rendering.still()
    let file = try picture.encoded(format, quality: transform.quality)
    try output?.write(file.bytes)
    decoded.bytes = file.bytes.count
    decoded.format = format
    (decoded.width, decoded.height, decoded.frames) = (geometry.width, geometry.height, frames)
  }

  private func writePixels(of source: Source, into decoded: inout Decoded) throws {
    let geometry = try source.geometry(request.transform)
    let rendering = Rendering(source: source, transform: request.transform, geometry: geometry, keepsAlpha: true)
    var picture = try rendering.still()
    // Grey with alpha is the one kind of pixels that hosts would have to know besides.
    if picture.bands == 2 { picture = try picture.inColorSpace(VIPS_INTERPRETATION_sRGB) }
    try picture.forEachRows { try output?.write($0) }
    (decoded.width, decoded.height, decoded.channels) = (picture.width, picture.height, picture.bands)
    decoded.bytes = picture.width * picture.height * picture.bands
  }
}

extension Transform {
  fileprivate static func preview(_ maxSide: Int) -> Transform {
    var transform = Transform()
    (transform.width, transform.height, transform.quality) = (maxSide, maxSide, 70)
    return transform
  }
}

extension Placeholder {
  fileprivate init(of source: Source) throws {
    var transform = Transform()
    (transform.width, transform.height) = (ThumbHash.longestSide, ThumbHash.longestSide)
    transform.isOriented = source.isOriented
    let geometry = try source.geometry(transform)
    var pixels: [UInt8] = []
    let picture = try Rendering(source: source, transform: transform, geometry: geometry, keepsAlpha: true).still()
    let bands = picture.bands
    try picture.forEachRows { row in
      for start in stride(from: 0, to: row.count, by: bands) {
        let isColor = bands >= 3
        pixels += [row[start], row[start + (isColor ? 1 : 0)], row[start + (isColor ? 2 : 0)]]
        pixels.append(bands.isMultiple(of: 2) ? row[start + bands - 1] : 255)
      }
    }
    let hash = ThumbHash(pixels: pixels, width: picture.width, height: picture.height)
    self.init(thumbHash: hash.bytes, color: hash.color)
  }
}
