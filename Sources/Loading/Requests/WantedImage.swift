internal import ImageCodec
internal import ImageStore

/// The properties that an image must have to be wanted (`want`). A class, because most loads want every image.
public final class WantedImage: Sendable {
  /// The minimum sides of the upright image, in pixels.
  public let minWidth, minHeight: Int?
  /// The maximum ratio of the longer side to the shorter one.
  public let maxAspectRatio: Double?
  /// Names of formats; nil for all.
  public let formats: [String]?

  public init(minWidth: Int?, minHeight: Int?, maxAspectRatio: Double?, formats: [String]?) {
    (self.minWidth, self.minHeight) = (minWidth, minHeight)
    (self.maxAspectRatio, self.formats) = (maxAspectRatio, formats)
  }

  /// The reason why an image is not wanted; nil if it is. A property that is unknown is no reason.
  func objection(to header: ImageHeader) -> String? {
    let isTurned = header.orientation >= 5
    return objection(
      format: header.format.rawValue, width: isTurned ? header.height : header.width,
      height: isTurned ? header.width : header.height)
  }

  /// The reason why a stored image is not wanted. A variant is judged by its original.
  func objection(to response: StoredResponse) -> String? {
    guard let source = response.metadata?.source else {
      let isTurned = response.orientation >= 5
      return objection(
        format: response.format, width: isTurned ? response.height : response.width,
        height: isTurned ? response.width : response.height)
    }
    // The orientation of the original is not stored with a variant: one of the two ways must do.
    guard let objection = objection(format: source.format, width: source.width, height: source.height) else {
      return nil
    }
    return self.objection(format: source.format, width: source.height, height: source.width).map { _ in objection }
  }

  private func objection(format: String?, width: Int?, height: Int?) -> String? {
    if let formats, let format, !formats.contains(format) {
      return "the format is \(format), and \(formats.joined(separator: ", ")) is wanted"
    }
    guard let width, let height, width > 0, height > 0 else { return nil }
    if let minWidth, width < minWidth { return "the image is \(width) pixels wide, and minWidth is \(minWidth)" }
    if let minHeight, height < minHeight { return "the image is \(height) pixels high, and minHeight is \(minHeight)" }
    if let maxAspectRatio, Double(max(width, height)) > maxAspectRatio * Double(min(width, height)) {
      return "the image is \(width) x \(height) pixels, and maxAspectRatio is \(maxAspectRatio)"
    }
    return nil
  }
}

extension LoadRequest {
  /// The error for a stored image that is not wanted; nil if it is.
  func refusal(of response: StoredResponse) -> LoadError? {
    want?.objection(to: response).map { LoadError(.unwanted, $0) }
  }
}
