/// Where the pixels of an image go in a transform. All in pixels of the oriented image or of the result.
public struct Geometry: Sendable, Hashable {
  /// What is taken from the source; the whole image when there is no crop.
  public var crop: Transform.Crop
  /// What that part is resized to.
  public var scaledWidth: Int
  public var scaledHeight: Int
  /// The result.
  public var width: Int
  public var height: Int
  /// Where the scaled part lies in the result: negative where it is cut, positive where the background shows.
  public var x: Int
  public var y: Int
}

/// The crop lies wholly outside the image.
public struct GeometryError: Error, Hashable, CustomStringConvertible {
  public let width: Int
  public let height: Int

  public var description: String { "the crop must overlap the image, which has \(width) x \(height) pixels" }
}

extension Transform {
  /// Where the pixels of a source go. Its size is that after orientation, at most 2^32 a side.
  ///
  /// Sides are rounded to the nearest pixel and are at least 1. Without `enlarge` the scale is at most 1: `inside` and
  /// `cover` then give less than their box, `contain` fills it with more background, and `fill` keeps the side.
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
    if fit == .cover, scaledWidth > crop.width || scaledHeight > crop.height { return geometry.narrowed() }
    // Cut and filled on both sides alike; of an odd number the second has one more.
    geometry.x = (geometry.width - scaledWidth) / 2
    geometry.y = (geometry.height - scaledHeight) / 2
    return geometry
  }

  /// As `geometry(width:height:)`, for the size that the header of a file tells and its EXIF orientation.
  public func geometry(of header: ImageHeader) throws(GeometryError) -> Geometry? {
    guard let width = header.width, let height = header.height else { return nil }
    let isTurned = isOriented && header.orientation >= 5
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
  /// The same result of a part that is scaled up, of which less is scaled to be cut away.
  fileprivate func narrowed() -> Geometry {
    var narrow = self
    let across = Self.narrowed(crop.width, scaled: scaledWidth, cut: width, factor: (scaledHeight, crop.height))
    (narrow.crop.x, narrow.crop.width) = (crop.x + across.start, across.side)
    (narrow.scaledWidth, narrow.x) = (across.scaled, across.offset)
    let down = Self.narrowed(crop.height, scaled: scaledHeight, cut: height, factor: (scaledWidth, crop.width))
    (narrow.crop.y, narrow.crop.height) = (crop.y + down.start, down.side)
    (narrow.scaledHeight, narrow.y) = (down.scaled, down.offset)
    return narrow
  }

  /// - Parameters:
  ///   - cut: how long the middle of the scaled side is that stays.
  ///   - factor: by what the side is scaled, as a fraction: that of the side which is not cut.
  private static func narrowed(
    _ side: Int, scaled: Int, cut: Int, factor: (Int, Int)
  ) -> (start: Int, side: Int, scaled: Int, offset: Int) {
    let before = (scaled - cut) / 2
    guard before > 0 else { return (0, side, scaled, (cut - scaled) / 2) }
    let start = max(0, before * factor.1 / factor.0 - reach)
    let end = min(side, (before + cut) * factor.1 / factor.0 + 1 + reach)
    func place(_ pixel: Int) -> Int { pixel == side ? scaled : (pixel * factor.0 + factor.1 / 2) / factor.1 }
    return (start, end - start, place(end) - place(start), place(start) - before)
  }

  /// The number of source pixels on each side that bicubic enlarging reads, plus one.
  private static let reach = 3
}
