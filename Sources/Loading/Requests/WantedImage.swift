public import ImageStore

/// The properties that an image must have to be wanted (`want`). A class, because most loads want every image.
public final class WantedImage: Sendable {
  /// The minimum sides of the upright image, in pixels.
  public let minWidth, minHeight: Int?
  /// The maximum ratio of the longer side to the shorter one.
  public let maxAspectRatio: Double?
  /// Nil for all.
  public let formats: [ImageFormat]?

  public init(minWidth: Int?, minHeight: Int?, maxAspectRatio: Double?, formats: [ImageFormat]?) {
    (self.minWidth, self.minHeight) = (minWidth, minHeight)
    (self.maxAspectRatio, self.formats) = (maxAspectRatio, formats)
  }

  /// The reason why a stored image is not wanted. A variant is judged by its original.
  func objection(to response: StoredResponse) -> String? {
    guard let source = response.metadata?.source else { return response.content.header.flatMap(objection) }
    // The orientation of the original is not stored with a variant: one of the two ways must do.
    guard let upright = source.header, let objection = objection(to: upright) else { return nil }
    var turned = upright
    turned.orientation = 6
    return self.objection(to: turned) == nil ? nil : objection
  }

  /// The reason why an image is not wanted; nil if it is. A property that is unknown is no reason.
  func objection(to header: ImageHeader) -> String? {
    let isTurned = header.orientation >= 5
    let (width, height) = isTurned ? (header.height, header.width) : (header.width, header.height)
    if let formats, !formats.contains(header.format) {
      let names = formats.map(\.rawValue).joined(separator: ", ")
      return "the format is \(header.format.rawValue), and \(names) is wanted"
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
