internal import ImageCodec

/// A geometry in the source's own layout, before it is turned upright; and how much smaller it can be loaded.
struct StoredLayout {
  let crop: Transform.Crop
  private let width: Int
  private let height: Int
  let scaledWidth: Int
  let scaledHeight: Int
  let shrink: Int

  /// The least reduction that is left to Lanczos' filter where the loader makes the image smaller: from there on, no
  /// error is greater than that of averaging areas (Tests/Benchmarks/README.md).
  private static let leastLeft = 1.5

  init(source: Source, geometry: Geometry) {
    (width, height) = (source.width, source.height)
    let orientation = source.orientation
    crop = geometry.crop.stored(orientation: orientation, width: width, height: height)
    let isTurned = orientation >= 5
    scaledWidth = isTurned ? geometry.scaledHeight : geometry.scaledWidth
    scaledHeight = isTurned ? geometry.scaledWidth : geometry.scaledHeight
    let reduction = min(Double(crop.width) / Double(scaledWidth), Double(crop.height) / Double(scaledHeight))
    let mostShrink = Int(reduction / Self.leastLeft)
    let (crop, width, height) = (crop, width, height)
    let isWhole = crop.width == width && crop.height == height
    shrink =
      source.format.shrinks(upTo: mostShrink).first { step in
        // libwebp stretches what it makes smaller to whole pixels; libjpeg cuts the last one.
        let isExact = isWhole || source.format != .webp || width.isMultiple(of: step) && height.isMultiple(of: step)
        return isExact && crop.isAligned(to: step, width: width, height: height)
      } ?? 1
  }

  var holdsLittle: Bool {
    Resampler.holdsLittle(from: (crop.width, crop.height), to: (scaledWidth, scaledHeight))
  }

  var isScaled: Bool { crop.width != scaledWidth || crop.height != scaledHeight }

  /// What to take of an image that was loaded so much smaller.
  func area(loadedWidth: Int, loadedHeight: Int) -> Transform.Crop {
    if shrink == 1 { return crop }
    let right = crop.x + crop.width == width ? loadedWidth : (crop.x + crop.width) / shrink
    let bottom = crop.y + crop.height == height ? loadedHeight : (crop.y + crop.height) / shrink
    let (left, top) = (crop.x / shrink, crop.y / shrink)
    return Transform.Crop(x: left, y: top, width: right - left, height: bottom - top)
  }
}

extension ImageFormat {
  /// By how much the loader can make an image smaller, up to `limit`, the most first: libjpeg by halves, libwebp by any
  /// factor.
  fileprivate func shrinks(upTo limit: Int) -> [Int] {
    switch self {
    case .jpeg: [8, 4, 2].filter { $0 <= limit }
    case .webp: limit < 2 ? [] : (2...limit).reversed()
    default: []
    }
  }
}

extension Transform.Crop {
  /// Where a part of the upright image stands in the file, which has `width` x `height` pixels.
  func stored(orientation: Int, width storedWidth: Int, height storedHeight: Int) -> Transform.Crop {
    let isTurned = orientation >= 5
    var stored = isTurned ? Transform.Crop(x: y, y: x, width: height, height: width) : self
    // Which of its own axes the file holds reversed.
    if [2, 3, 7, 8].contains(orientation) { stored.x = storedWidth - stored.x - stored.width }
    if [3, 4, 6, 7].contains(orientation) { stored.y = storedHeight - stored.y - stored.height }
    return stored
  }

  /// Whether its edges are such that none of the blocks of `step` pixels is cut, but by the image's own edges.
  fileprivate func isAligned(to step: Int, width imageWidth: Int, height imageHeight: Int) -> Bool {
    let right = x + width
    let bottom = y + height
    return x.isMultiple(of: step) && y.isMultiple(of: step)
      && (right == imageWidth || right.isMultiple(of: step)) && (bottom == imageHeight || bottom.isMultiple(of: step))
  }
}
