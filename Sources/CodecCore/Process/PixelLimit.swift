package import ImageCodec

/// The limit of a request on the pixels that are decoded or written.
package struct PixelLimit {
  private let maxPixels: Int

  package init(_ request: CodecRequest) { maxPixels = request.maxPixels }

  package func check(width: Int, height: Int, frames: Int = 1) throws(DecodeError) {
    if height * frames > maxPixels / max(1, width) {
      throw .overLimit(maxPixels, width: width, height: height, frames: frames)
    }
  }

  /// The geometry of a transform for a source of this size, upright.
  package func geometry(
    _ transform: Transform, width: Int, height: Int, frames: Int = 1
  ) throws(DecodeError) -> Geometry {
    let geometry: Geometry
    do throws(GeometryError) { geometry = try transform.geometry(width: width, height: height) } catch {
      throw .cropOutside(error.description)
    }
    try check(width: geometry.width, height: geometry.height, frames: frames)
    try check(width: geometry.scaledWidth, height: geometry.scaledHeight, frames: frames)
    return geometry
  }
}

extension Geometry {
  /// Throws if a file of this format cannot hold the result.
  package func check(for format: ImageFormat) throws(DecodeError) {
    if max(width, height) > format.maxSide {
      throw .tooLong(sideOf: "the result", format.maxSide, width: width, height: height)
    }
  }
}
