internal import CodecCore
internal import ImageCodec

/// The files of a set, from one decode.
extension Decode {
  func writeRenditions(
    _ parts: [CodecRequest.Part], of source: Source, _ facts: FactSet, checks: Bool, into decoded: inout Decoded
  ) throws {
    let others = parts.count + (facts.contains(.perceptualHash) ? 1 : 0) + (request.wantsPlaceholder ? 1 : 0)
    if checks {
      if others > 0, source.decodesAnew { try keepPixels(of: source) } else { try source.readAll() }
    }
    /// Nil for a stripped file.
    var renderings: [Rendering?] = try request.parts.enumerated().map { index, request in
      if parts[index].rendition.isStripped { return nil }
      let source = try Source(request: request, input: input)
      return try makeRendition(index, of: parts.count) { try rendering(of: source, request.transform) }
    }
    // The placeholder is made like a last file.
    if request.wantsPlaceholder { renderings.append(try smallRendering(of: source)) }
    let cascade = Cascade(renderings.map { $0?.layout })
    if cascade.readers + (facts.contains(.perceptualHash) ? 1 : 0) > 1, source.decodesAnew {
      try keepPixels(of: source)
    }
    if !facts.isEmpty { decoded.facts = try source.facts(facts) }

    var scaled: [Int: Picture] = [:]
    var files: [Int: (file: EncodedFile, told: Decoded.File)] = [:]
    for step in cascade.steps {
      try makeRendition(step.index, of: parts.count) {
        guard let rendering = renderings[step.index] else {
          return files[step.index] = try stripped(source, parts[step.index])
        }
        var picture: Picture
        if rendering.layout == nil {
          picture = try rendering.picture()
        } else {
          picture = try rendering.scaled(from: step.parent.flatMap { scaled[$0] })
          if step.isParent {
            picture = try picture.inMemory()
            scaled[step.index] = picture
          }
          picture = try rendering.still(from: picture)
        }
        guard step.index < parts.count else { return decoded.placeholder = try Placeholder(of: picture) }
        if let same = parts.part(like: step.index, among: files.keys, geometry: { renderings[$0]?.geometry }) {
          return files[step.index] = files[same]
        }
        let (file, quality) = try encoded(picture, by: rendering, parts[step.index].rendition)
        let told = Decoded.File(
          bytes: file.bytes.count, format: rendering.format, width: rendering.geometry.width,
          height: rendering.geometry.height, frames: rendering.frames, quality: quality)
        files[step.index] = (file, told)
      }
    }
    for index in parts.indices {
      guard let (file, told) = files[index] else { continue }
      try output?.write(file.bytes)
      decoded.renditions.append(told)
      decoded.bytes += file.bytes.count
    }
  }

  private func stripped(_ source: Source, _ part: CodecRequest.Part) throws -> (EncodedFile, Decoded.File) {
    // An icon or bitmap that contains another image is not that image.
    let format = request.format
    let file = try part.rendition.stripped(input.bytes, format, orientation: part.orientation)
    let told = Decoded.File(
      bytes: file.bytes.count, format: format, width: source.width, height: source.height, frames: 1, quality: nil)
    return (file, told)
  }

  /// Decodes the image once for several readers.
  private func keepPixels(of source: Source) throws {
    if input.decoded == nil { input.decoded = try source.picture.inMemory() }
  }

  private func encoded(
    _ picture: Picture, by rendering: Rendering, _ rendition: Rendition
  ) throws -> (EncodedFile, quality: Int?) {
    let (format, isLossless, quality) = (rendering.format, rendering.isLossless, rendering.transform.quality)
    let exif = rendering.exif
    guard let maxBytes = rendition.maxBytes else {
      return (try picture.encoded(format, quality: quality, isLossless: isLossless, exif: exif), nil)
    }
    // Encoded more than once.
    let kept = try picture.inMemory()
    let file = try rendition.encoded(format, maxBytes, mayBeLossless: isLossless) {
      try kept.encoded(format, quality: $0, isLossless: $0 == nil, exif: exif)
    }
    guard let file else { throw DecodeError.unsupportedFormat("the file cannot be encoded") }
    return file
  }
}
