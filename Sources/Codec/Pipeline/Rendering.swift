internal import CVips
internal import CodecCore
internal import ImageCodec

/// Renders the pixels of the result from those of the source.
///
/// Reductions come first and in the stored orientation, so that orienting the image moves few pixels.
struct Rendering {
  let source: Source
  let transform: Transform
  let geometry: Geometry
  /// The format of the result. If it has no alpha, transparent pixels are blended onto the background.
  let format: ImageFormat
  /// The number of frames of the result.
  let frames: Int

  init(source: Source, transform: Transform, format: ImageFormat, frames: Int = 1) throws(DecodeError) {
    (self.source, self.transform, self.format, self.frames) = (source, transform, format, frames)
    geometry = try source.geometry(transform)
  }

  /// Whether the file is written without loss if its format permits it: that of artwork whose pixels are kept. For
  /// artwork, a lossy encoder makes larger files and changes colours at edges. For all other images, a lossless encoder
  /// makes files ten times as large in five times the time.
  var isLossless: Bool {
    transform.quality == nil && geometry.keepsPixels && transform.blur == 0 && source.isArtwork
  }

  /// The EXIF data of the file: the fields that it keeps. Empty without any.
  var exif: [UInt8] {
    let kept = transform.metadata
    return kept.isEmpty ? [] : EXIFWriter.data(source.exif().filter { kept.contains($0.key) })
  }

  func picture() throws -> Picture { try frames > 1 ? animation() : still() }

  /// The first frame.
  func still() throws -> Picture {
    if let drawing = source.input.drawing {
      let size = (width: geometry.scaledWidth, height: geometry.scaledHeight)
      return try finished(try source.input.draw(drawing, geometry.crop, size: size))
    }
    return try still(from: try scaled())
  }

  /// The layout of a still image of pixels. Nil for an animation, for a drawing, which has no pixels of its own, and for
  /// a part that the pixels themselves decide.
  var layout: StoredLayout? {
    let dependsOnPixels = transform.fit == .cover && transform.focus.needsPixels
    return frames > 1 || source.input.drawing != nil || dependsOnPixels ? nil : source.layout(geometry)
  }

  /// The first frame, from the scaled part as it is stored.
  func still(from scaled: Picture) throws -> Picture { try finished(try scaled.oriented(source.orientation)) }

  /// The requested part in its final size, as it is stored: not yet upright.
  ///
  /// - Parameter larger: the whole image in another size, from which it is made.
  func scaled(from larger: Picture? = nil) throws -> Picture {
    let stored = source.layout(geometry)
    if let larger { return try larger.resized(toWidth: stored.scaledWidth, height: stored.scaledHeight) }
    if stored.needsLittleMemory, source.hasPlainPlanes, let reader = try source.jpegReader() {
      return try scaled(from: reader, stored)
    }
    return try scaled(from: try source.frame(0, of: try source.reopened(shrink: stored.shrink)), stored)
  }

  /// All frames, stacked vertically.
  func animation() throws -> Picture {
    let stored = source.layout(geometry)
    let roll = try source.reopened(shrink: stored.shrink).inMemory()
    var frames: [Picture] = []
    // All frames keep the part of the first, so that nothing jumps.
    var focus: (x: Int, y: Int)?
    for index in 0..<source.frames {
      var frame = try scaled(from: try source.frame(index, of: roll), stored).oriented(source.orientation)
      if index == 0, cuts(frame) {
        frame = try frame.inMemory()
        focus = try start(in: frame)
      }
      frames.append(try finished(frame, keeping: focus))
    }
    return try Picture.stacked(frames, from: roll)
  }

  private func cuts(_ picture: Picture) -> Bool { geometry.width < picture.width || geometry.height < picture.height }

  /// The left and top edge of the part that is kept of the scaled picture, which must be in memory.
  private func start(in picture: Picture) throws(LibraryError) -> (x: Int, y: Int) {
    let interest: Picture.Interest? =
      switch transform.focus {
      case .attention: .attention
      case .entropy: .entropy
      case .center, .point: nil
      }
    guard transform.fit == .cover, let interest else { return (max(0, -geometry.x), max(0, -geometry.y)) }
    return try picture.start(ofWidth: geometry.width, height: geometry.height, by: interest)
  }

  private func scaled(from frame: Picture, _ stored: StoredLayout) throws -> Picture {
    let area = stored.area(loadedWidth: frame.width, loadedHeight: frame.height)
    var result = try frame.extracted(x: area.x, y: area.y, width: area.width, height: area.height)
    // Deep pixels are converted first. The profile of bytes is applied later, to fewer pixels.
    if result.bandFormat != VIPS_FORMAT_UCHAR { result = try result.standardized() }
    result = try result.resized(toWidth: stored.scaledWidth, height: stored.scaledHeight)
    return try result.standardized()
  }

  private func scaled(from reader: JPEGReader, _ stored: StoredLayout) throws -> Picture {
    let size = (width: stored.scaledWidth, height: stored.scaledHeight)
    let result: Picture
    if stored.isScaled {
      let pixels = try PixelMemory(size.width * size.height * reader.storedBands) {
        try reader.resample(stored.crop, shrink: stored.shrink, to: size, $0)
      }
      result = try source.picture.like(UnsafeRawBufferPointer(pixels.bytes), width: size.width, height: size.height)
    } else {
      let pixels = try reader.pixels(stored.crop)
      result = try pixels.withUnsafeBytes { try source.picture.like($0, width: size.width, height: size.height) }
    }
    return try result.standardized()
  }

  /// - Parameter focus: nil to find the part to keep, if some is cut.
  private func finished(_ picture: Picture, keeping focus: (x: Int, y: Int)? = nil) throws(LibraryError) -> Picture {
    var result = picture
    if cuts(result) {
      result = try result.inMemory()
      let place = if let focus { focus } else { try start(in: result) }
      result = try result.extracted(
        x: place.x, y: place.y, width: min(geometry.width, result.width), height: min(geometry.height, result.height))
    }
    if geometry.width > result.width || geometry.height > result.height {
      result = try result.placed(
        x: max(0, geometry.x), y: max(0, geometry.y), width: geometry.width, height: geometry.height,
        background: transform.background)
    }
    if transform.blur > 0 { result = try result.blurred(sigma: transform.blur) }
    if transform.cornerRadius > 0 { result = try result.withRoundCorners(radius: transform.cornerRadius) }
    if !format.holdsAlpha { result = try result.flattened(on: transform.background) }
    // Last, so that the visible background becomes grey as well.
    return transform.isGrayscale ? try result.inColorSpace(VIPS_INTERPRETATION_B_W) : result
  }
}
