/// Where the pixels of a transformed image come from and go to. All sizes are after orientation.
public struct Geometry: Sendable, Hashable {
  /// What is taken from the source.
  public var crop: Transform.Crop
  /// What that is resized to.
  public var scaledWidth: Int
  public var scaledHeight: Int
  /// The result.
  public var width: Int
  public var height: Int
  /// Where the resized part lies in the result; negative where it is cut.
  public var x: Int
  public var y: Int
}

/// The crop lies outside of the image.
public struct GeometryError: Error, Hashable {}

extension Transform {
  public func geometry(width: Int, height: Int) throws(GeometryError) -> Geometry {
    var area = Crop(x: 0, y: 0, width: width, height: height)
    if let crop {
      let (left, top) = (max(crop.x, 0), max(crop.y, 0))
      let (right, bottom) = (min(crop.x + crop.width, width), min(crop.y + crop.height, height))
      guard left < right, top < bottom else { throw GeometryError() }
      area = Crop(x: left, y: top, width: right - left, height: bottom - top)
    }
    let (boxWidth, boxHeight) = (self.width, self.height)
    var scaleX = boxWidth.map { Double($0) / Double(area.width) } ?? .infinity
    var scaleY = boxHeight.map { Double($0) / Double(area.height) } ?? .infinity
    if scaleX.isInfinite && scaleY.isInfinite { (scaleX, scaleY) = (1, 1) }
    if scaleX.isInfinite { scaleX = scaleY }
    if scaleY.isInfinite { scaleY = scaleX }
    switch fit {
    case .inside, .contain: (scaleX, scaleY) = (min(scaleX, scaleY), min(scaleX, scaleY))
    case .cover: (scaleX, scaleY) = (max(scaleX, scaleY), max(scaleX, scaleY))
    case .fill: break
    }
    if !enlarge { (scaleX, scaleY) = (min(scaleX, 1), min(scaleY, 1)) }
    let scaledWidth = max(1, Int((Double(area.width) * scaleX).rounded()))
    let scaledHeight = max(1, Int((Double(area.height) * scaleY).rounded()))
    var (resultWidth, resultHeight) = (scaledWidth, scaledHeight)
    if fit == .contain { (resultWidth, resultHeight) = (boxWidth ?? scaledWidth, boxHeight ?? scaledHeight) }
    if fit == .cover {
      (resultWidth, resultHeight) = (
        min(boxWidth ?? scaledWidth, scaledWidth), min(boxHeight ?? scaledHeight, scaledHeight)
      )
    }
    return Geometry(
      crop: area, scaledWidth: scaledWidth, scaledHeight: scaledHeight, width: resultWidth, height: resultHeight,
      x: (resultWidth - scaledWidth) / 2, y: (resultHeight - scaledHeight) / 2)
  }

  public func outputFormat(of source: ImageFormat, hasAlpha: Bool, frames: Int) -> ImageFormat {
    if let format { return format }
    if self.frames == .all && frames > 1 { return .webp }
    switch source {
    case .jpeg, .png, .webp, .avif: return source
    default: return hasAlpha ? .png : .jpeg
    }
  }
}
