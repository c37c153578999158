internal import CVips
internal import CodecCore
internal import ImageCodec

/// One decode, from the input to the requested output.
struct Decode {
  let request: CodecRequest
  let input: Input
  /// A new file, if the output is a file.
  let output: OutputFile?

  func run() throws(DecodeError) -> Decoded {
    // Removes warnings about earlier images.
    vips_error_clear()
    do { return try perform() } catch { throw DecodeError(error) }
  }

  private func perform() throws -> Decoded {
    guard Library.formats.decode.contains(request.format) else {
      throw DecodeError.unsupportedFormat("the decoder does not read \(request.format.rawValue)")
    }
    var decoded = Decoded()
    if case .facts(let wanted) = request.output, let facts = input.factsWithoutPixels(wanted, request.format) {
      (decoded.facts, decoded.notes) = (facts, input.notes)
      return decoded
    }
    let source = try Source(request: request, input: input)
    (decoded.sourceWidth, decoded.sourceHeight) = (source.orientedWidth, source.orientedHeight)
    switch request.output {
    case .placeholder: decoded.placeholder = try Placeholder(of: try small(source))
    case .facts(let facts): decoded.facts = try source.facts(facts)
    case .check:
      try source.readAll()
      if request.wantsPlaceholder { decoded.placeholder = try Placeholder(of: try small(source)) }
    case .pixels: try writePixels(of: source, into: &decoded)
    case .encoded: try writeFile(of: source, transform: request.transform, into: &decoded)
    case .preview(let maxSide): try writeFile(of: source, transform: .preview(maxSide), into: &decoded)
    case .renditions(let parts, let facts, let checks):
      try writeRenditions(parts, of: source, facts, checks: checks, into: &decoded)
    }
    decoded.notes = source.input.notes
    return decoded
  }

  private func writeFile(of source: Source, transform: Transform, into decoded: inout Decoded) throws {
    let rendering = try rendering(of: source, transform)
    var picture = try rendering.picture()
    let geometry = rendering.geometry
    if request.wantsPlaceholder {
      // In memory, because both outputs read it.
      picture = try picture.inMemory()
      let first = try picture.extracted(x: 0, y: 0, width: geometry.width, height: geometry.height)
      decoded.placeholder = try Placeholder(of: first)
    }
    let file = try picture.encoded(
      rendering.format, quality: transform.quality, isLossless: rendering.isLossless, exif: rendering.exif)
    try output?.write(file.bytes)
    decoded.bytes = file.bytes.count
    decoded.format = rendering.format
    (decoded.width, decoded.height, decoded.frames) = (geometry.width, geometry.height, rendering.frames)
  }

  /// The rendering of a file that this decoder can write.
  func rendering(of source: Source, _ transform: Transform) throws -> Rendering {
    let frames = transform.frames == .all ? source.frames : 1
    let format = outputFormat(of: source, transform, frames: frames)
    guard Library.formats.encode.contains(format) else {
      let others = Library.formats.encode.map(\.rawValue).joined(separator: ", ")
      throw DecodeError.unsupportedFormat("the decoder does not write \(format.rawValue); it writes \(others)")
    }
    let rendering = try Rendering(source: source, transform: transform, format: format, frames: frames)
    try rendering.geometry.check(for: format)
    return rendering
  }

  private func writePixels(of source: Source, into decoded: inout Decoded) throws {
    var picture = try Rendering(source: source, transform: request.transform, format: .png).still()
    // Converted to colour, so that hosts need not support grey with alpha.
    if picture.bands == 2 { picture = try picture.inColorSpace(VIPS_INTERPRETATION_sRGB) }
    if request.wantsPlaceholder {
      picture = try picture.inMemory()
      decoded.placeholder = try Placeholder(of: picture)
    }
    try picture.forEachRows { try output?.write($0) }
    (decoded.width, decoded.height, decoded.channels) = (picture.width, picture.height, picture.bands)
    decoded.bytes = picture.width * picture.height * picture.bands
  }

  private func outputFormat(of source: Source, _ transform: Transform, frames: Int) -> ImageFormat {
    transform.outputFormat(of: request.format, hasAlpha: source.hasAlpha(after: transform), frames: frames)
  }

  /// The result of the transform, or a small version of it directly if that looks the same.
  private func small(_ source: Source) throws -> Picture { try smallRendering(of: source).still() }

  func smallRendering(of source: Source) throws -> Rendering {
    let format = outputFormat(of: source, request.transform, frames: 1)
    return try Rendering(source: source, transform: request.transform.forPlaceholder, format: format)
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
  /// - Parameter picture: has any size, and standard pixels.
  init(of picture: Picture) throws {
    let size = try ThumbHash.size(width: picture.width, height: picture.height)
    let small = try picture.resized(toWidth: size.width, height: size.height)
    try self.init(width: size.width, height: size.height, bands: small.bands) { try small.forEachRows($0) }
  }
}
