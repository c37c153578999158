internal import ImageCodec
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

  /// The error for a stored image that is not wanted; nil if it is. A variant is judged by its original.
  func refusal(of response: StoredResponse) -> LoadError? {
    guard let source = response.metadata?.source else { return response.content.header.flatMap(refusal) }
    // The orientation of the original is not stored with a variant: one of the two ways must do.
    guard let upright = source.header, let refusal = refusal(of: upright) else { return nil }
    var turned = upright
    turned.orientation = 6
    return self.refusal(of: turned) == nil ? nil : refusal
  }

  /// The error for an image that is not wanted; nil if it is. A property that is unknown is no reason.
  func refusal(of header: ImageHeader) -> LoadError? {
    if let formats, !formats.contains(header.format) {
      let names = formats.map(\.rawValue).joined(separator: ", ")
      var error = LoadError(.unwanted, "the format is \(header.format.rawValue), and \(names) is wanted")
      (error.figures.wanted, error.figures.format) = ("formats", header.format)
      return error
    }
    guard let (width, height) = header.upright, width > 0, height > 0 else { return nil }
    let ratio = Double(max(width, height)) / Double(min(width, height))
    let area = "\(width) x \(height) pixels"
    let rules: [(property: String, isKept: Bool, limit: Double?, text: String)] = [
      ("minWidth", width >= minWidth ?? 0, minWidth.map(Double.init), "\(width) pixels wide"),
      ("minHeight", height >= minHeight ?? 0, minHeight.map(Double.init), "\(height) pixels high"),
      ("maxAspectRatio", ratio <= maxAspectRatio ?? .infinity, maxAspectRatio, area),
    ]
    guard let rule = rules.first(where: { !$0.isKept }), let limit = rule.limit else { return nil }
    let number = Int64(exactly: limit).map { "\($0)" } ?? "\(limit)"
    var error = LoadError(.unwanted, "the image is \(rule.text), and \(rule.property) is \(number)")
    error.figures = ErrorFigures(width: width, height: height)
    (error.figures.wanted, error.figures.limit) = (rule.property, limit)
    return error
  }
}

extension LoadRequest {
  /// The error for a stored image that is not wanted; nil if it is.
  func refusal(of response: StoredResponse) -> LoadError? {
    want?.refusal(of: response)
  }
}
