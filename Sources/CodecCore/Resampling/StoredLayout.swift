package import ImageCodec

/// A geometry in the stored orientation of the source, and the factor by which the loader may reduce it.
package struct StoredLayout {
  package let crop: Transform.Crop
  private let width: Int
  private let height: Int
  package let scaledWidth: Int
  package let scaledHeight: Int
  package let shrink: Int
  /// Whether no part of the source is cut off.
  package let isWhole: Bool

  /// The minimum reduction that is left to the Lanczos filter if the loader reduces the image. From this value on, no
  /// error is greater than that of area averaging (Tests/Benchmarks/README.md).
  private static let minRemainingReduction = 1.5
  /// The minimum side of an image that the loader has reduced. The last block of a JPEG has padding beside the pixels of
  /// the edge, which libjpeg reduces with them: in an image of few samples, that is visible.
  private static let minReducedSide = 8

  /// - Parameters:
  ///   - size: the size of the source as it is stored.
  ///   - orientation: as in EXIF.
  package init(_ geometry: Geometry, of format: ImageFormat, size: (width: Int, height: Int), orientation: Int) {
    (width, height) = size
    crop = geometry.crop.stored(orientation: orientation, width: width, height: height)
    let isTurned = orientation >= 5
    scaledWidth = isTurned ? geometry.scaledHeight : geometry.scaledWidth
    scaledHeight = isTurned ? geometry.scaledWidth : geometry.scaledHeight
    let reduction = min(Double(crop.width) / Double(scaledWidth), Double(crop.height) / Double(scaledHeight))
    let maxShrink = min(
      Int(reduction / Self.minRemainingReduction), min(crop.width, crop.height) / Self.minReducedSide)
    isWhole = crop.width == width && crop.height == height
    let (crop, width, height, isWhole) = (crop, width, height, isWhole)
    shrink =
      format.shrinks(upTo: maxShrink).first { step in
        // libwebp scales the reduced image to whole pixels; libjpeg cuts the last pixel.
        let isExact = isWhole || format != .webp || width.isMultiple(of: step) && height.isMultiple(of: step)
        return isExact && crop.isAligned(to: step, width: width, height: height)
      } ?? 1
  }

  package var needsLittleMemory: Bool {
    Resampler.needsLittleMemory(from: (crop.width, crop.height), to: (scaledWidth, scaledHeight))
  }

  package var isEnlarged: Bool { scaledWidth > crop.width || scaledHeight > crop.height }

  package var isScaled: Bool { crop.width != scaledWidth || crop.height != scaledHeight }

  /// The part to use of an image that was loaded with a reduction.
  package func area(loadedWidth: Int, loadedHeight: Int) -> Transform.Crop {
    if shrink == 1 { return crop }
    let right = crop.x + crop.width == width ? loadedWidth : (crop.x + crop.width) / shrink
    let bottom = crop.y + crop.height == height ? loadedHeight : (crop.y + crop.height) / shrink
    let (left, top) = (crop.x / shrink, crop.y / shrink)
    return Transform.Crop(x: left, y: top, width: right - left, height: bottom - top)
  }
}

extension ImageFormat {
  /// The factors up to `limit` by which the loader can reduce an image, the largest first: libjpeg by powers of two,
  /// libwebp by any factor.
  fileprivate func shrinks(upTo limit: Int) -> [Int] {
    switch self {
    case .jpeg: [8, 4, 2].filter { $0 <= limit }
    case .webp: limit < 2 ? [] : (2...limit).reversed()
    default: []
    }
  }
}

extension Transform.Crop {
  /// The position in the file of a part of the upright image. The file has `width` x `height` pixels.
  package func stored(orientation: Int, width storedWidth: Int, height storedHeight: Int) -> Transform.Crop {
    let isTurned = orientation >= 5
    var stored = isTurned ? Transform.Crop(x: y, y: x, width: height, height: width) : self
    // The axes that the file stores in reverse.
    if [2, 3, 7, 8].contains(orientation) { stored.x = storedWidth - stored.x - stored.width }
    if [3, 4, 6, 7].contains(orientation) { stored.y = storedHeight - stored.y - stored.height }
    return stored
  }

  /// Whether the edges cut no block of `step` pixels, except at the edges of the image.
  fileprivate func isAligned(to step: Int, width imageWidth: Int, height imageHeight: Int) -> Bool {
    let right = x + width
    let bottom = y + height
    return x.isMultiple(of: step) && y.isMultiple(of: step)
      && (right == imageWidth || right.isMultiple(of: step)) && (bottom == imageHeight || bottom.isMultiple(of: step))
  }
}
