/// The position and size of an image's pixels in a transform, in pixels of the oriented image or of the result.
public struct Geometry: Sendable, Hashable {
  /// The part of the source that is used; the whole image without a crop.
  public var crop: Transform.Crop
  /// The width that the cropped part is resized to.
  public var scaledWidth: Int
  public var scaledHeight: Int
  /// The width of the result.
  public var width: Int
  public var height: Int
  /// The position of the scaled part in the result: negative if it is cut, positive if the background shows. If the
  /// focus needs the pixels, it is that of the centre.
  public var x: Int
  public var y: Int

  /// Whether the used part of the source keeps its size.
  package var keepsPixels: Bool { scaledWidth == crop.width && scaledHeight == crop.height }
}

/// The error for a crop that is wholly outside the image.
public struct GeometryError: Error, Hashable, CustomStringConvertible {
  public let width: Int
  public let height: Int

  public var description: String { "the crop must overlap the image, which has \(width) x \(height) pixels" }
}

extension Transform {
  /// The geometry for a source of this size, measured after orientation, at most 2^32 a side.
  ///
  /// Sides are rounded to the nearest pixel and are at least 1. Without `enlarge` the scale is at most 1: the result of
  /// `inside` and `cover` may then be smaller than the box, `contain` adds more background, and `fill` keeps the side.
  public func geometry(width sourceWidth: Int, height sourceHeight: Int) throws(GeometryError) -> Geometry {
    let crop = try clipped(toWidth: sourceWidth, height: sourceHeight)
    let (scaledWidth, scaledHeight) = scaled(crop.width, crop.height)
    var geometry = Geometry(
      crop: crop, scaledWidth: scaledWidth, scaledHeight: scaledHeight, width: scaledWidth, height: scaledHeight, x: 0,
      y: 0)
    guard let width, let height else { return geometry }
    switch fit {
    case .inside, .fill: break
    case .contain: (geometry.width, geometry.height) = (width, height)
    case .cover: (geometry.width, geometry.height) = (min(width, scaledWidth), min(height, scaledHeight))
    }
    // Cut or padded equally on both sides; if the difference is odd, the second side gets one pixel more.
    geometry.x = (geometry.width - scaledWidth) / 2
    geometry.y = (geometry.height - scaledHeight) / 2
    guard fit == .cover else { return geometry }
    if case .point(let x, let y) = focus {
      geometry.x = -Self.start(ofMiddle: x, cut: geometry.width, of: scaledWidth)
      geometry.y = -Self.start(ofMiddle: y, cut: geometry.height, of: scaledHeight)
    }
    let isEnlarged = scaledWidth > crop.width || scaledHeight > crop.height
    return isEnlarged && !focus.needsPixels ? geometry.narrowed() : geometry
  }

  /// The start of a part of a side whose middle is as near as possible to a fraction of the side.
  private static func start(ofMiddle fraction: Double, cut: Int, of scaled: Int) -> Int {
    min(scaled - cut, max(0, Int((fraction * Double(scaled) - Double(cut) / 2).rounded(.down))))
  }

  /// The same as `geometry(width:height:)`, for the size in a file's header and its EXIF orientation.
  public func geometry(of header: ImageHeader) throws(GeometryError) -> Geometry? {
    guard let width = header.width, let height = header.height else { return nil }
    let isTurned = isOriented && header.isTurned
    return try geometry(width: isTurned ? height : width, height: isTurned ? width : height)
  }

  private func clipped(toWidth width: Int, height: Int) throws(GeometryError) -> Crop {
    guard let crop else { return Crop(x: 0, y: 0, width: width, height: height) }
    let (left, top) = (max(0, crop.x), max(0, crop.y))
    let (right, bottom) = (min(width, crop.x + crop.width), min(height, crop.y + crop.height))
    guard left < right, top < bottom else { throw GeometryError(width: width, height: height) }
    return Crop(x: left, y: top, width: right - left, height: bottom - top)
  }

  private func scaled(_ width: Int, _ height: Int) -> (width: Int, height: Int) {
    func allowed(_ side: Int, _ wanted: Int) -> Int { enlarge ? wanted : min(side, wanted) }
    switch (self.width, self.height) {
    case (nil, nil): return (width, height)
    case (let wanted?, nil): return byWidth(width, height, allowed(width, wanted))
    case (nil, let wanted?): return byHeight(width, height, allowed(height, wanted))
    case (let boxWidth?, let boxHeight?):
      if fit == .fill { return (allowed(width, boxWidth), allowed(height, boxHeight)) }
      // The box is narrower than the image if its width is the smaller scale.
      let isNarrower = boxWidth * height <= boxHeight * width
      return isNarrower == (fit != .cover)
        ? byWidth(width, height, allowed(width, boxWidth)) : byHeight(width, height, allowed(height, boxHeight))
    }
  }

  private func byWidth(_ width: Int, _ height: Int, _ wanted: Int) -> (width: Int, height: Int) {
    (wanted, Self.rounded(height, times: wanted, over: width))
  }

  private func byHeight(_ width: Int, _ height: Int, _ wanted: Int) -> (width: Int, height: Int) {
    (Self.rounded(width, times: wanted, over: height), wanted)
  }

  private static func rounded(_ side: Int, times factor: Int, over divisor: Int) -> Int {
    max(1, (side * factor + divisor / 2) / divisor)
  }
}

extension Geometry {
  /// The same result from a smaller part: if the part is scaled up and then cut, less of it is scaled.
  fileprivate func narrowed() -> Geometry {
    var narrow = self
    let across = Self.narrowed(
      crop.width, scaled: scaledWidth, before: -x, cut: width, factor: (scaledHeight, crop.height))
    (narrow.crop.x, narrow.crop.width) = (crop.x + across.start, across.side)
    (narrow.scaledWidth, narrow.x) = (across.scaled, across.offset)
    let down = Self.narrowed(
      crop.height, scaled: scaledHeight, before: -y, cut: height, factor: (scaledWidth, crop.width))
    (narrow.crop.y, narrow.crop.height) = (crop.y + down.start, down.side)
    (narrow.scaledHeight, narrow.y) = (down.scaled, down.offset)
    return narrow
  }

  /// - Parameters:
  ///   - before: the length that is cut before the part that stays.
  ///   - cut: the length of the part of the scaled side that stays.
  ///   - factor: the scale of the side as a fraction, namely that of the side that is not cut.
  private static func narrowed(
    _ side: Int, scaled: Int, before: Int, cut: Int, factor: (Int, Int)
  ) -> (start: Int, side: Int, scaled: Int, offset: Int) {
    guard scaled > cut else { return (0, side, scaled, 0) }
    let start = max(0, before * factor.1 / factor.0 - reach)
    let end = min(side, (before + cut) * factor.1 / factor.0 + 1 + reach)
    func place(_ pixel: Int) -> Int { pixel == side ? scaled : (pixel * factor.0 + factor.1 / 2) / factor.1 }
    return (start, end - start, place(end) - place(start), place(start) - before)
  }

  /// The number of source pixels on each side that bicubic enlarging reads, plus one.
  private static let reach = 3
}
