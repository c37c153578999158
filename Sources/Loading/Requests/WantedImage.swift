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
    objection(
      format: header.format.rawValue, width: header.width, height: header.height, isTurned: header.orientation >= 5)
  }

  /// The reason why a stored image is not wanted. A variant is judged by its original.
  func objection(to response: StoredResponse) -> String? {
    guard let source = response.metadata?.source else {
      return objection(
        format: response.format, width: response.width, height: response.height, isTurned: response.orientation >= 5)
    }
    // The orientation of the original is not stored with a variant: one of the two ways must do.
    let objections = [false, true].compactMap { isTurned in
      objection(format: source.format, width: source.width, height: source.height, isTurned: isTurned)
    }
    return objections.count == 2 ? objections[0] : nil
  }

  /// - Parameters:
  ///   - width: that of the stored image, like the height.
  ///   - isTurned: whether the upright image has these sides exchanged.
  private func objection(format: String?, width storedWidth: Int?, height storedHeight: Int?, isTurned: Bool) -> String?
  {
    let (width, height) = isTurned ? (storedHeight, storedWidth) : (storedWidth, storedHeight)
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
