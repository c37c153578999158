internal import ImageCodec
public import ImageStore

/// The properties that an image must have to be wanted (`want`). A class, because most loads want every image.
public final class WantedImage: Sendable {
  /// The minimum and maximum sides of the upright image, in pixels.
  public let minWidth, minHeight, maxWidth, maxHeight: Int?
  /// The maximum of width x height.
  public let maxPixels: Int?
  public let maxFrames: Int?
  /// The maximum ratio of the longer side to the shorter one.
  public let maxAspectRatio: Double?
  /// Nil for all.
  public let formats: [ImageFormat]?

  public init(
    minWidth: Int? = nil, minHeight: Int? = nil, maxWidth: Int? = nil, maxHeight: Int? = nil, maxPixels: Int? = nil,
    maxFrames: Int? = nil, maxAspectRatio: Double? = nil, formats: [ImageFormat]? = nil
  ) {
    (self.minWidth, self.minHeight) = (minWidth, minHeight)
    (self.maxWidth, self.maxHeight) = (maxWidth, maxHeight)
    (self.maxPixels, self.maxFrames) = (maxPixels, maxFrames)
    (self.maxAspectRatio, self.formats) = (maxAspectRatio, formats)
  }

  /// The error for a stored image that is not wanted; nil if it is. A variant is judged by its original.
  func refusal(of response: StoredResponse) -> LoadError? {
    guard let source = response.metadata?.source else { return response.content.header.flatMap(refusal) }
    guard let stored = source.header, let refusal = refusal(of: stored) else { return nil }
    // With an unknown orientation, one of the two ways must do.
    guard stored.orientation == 0 else { return refusal }
    var turned = stored
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
    let size = header.upright.flatMap { $0.width > 0 && $0.height > 0 ? $0 : nil }
    for rule in size.map(rules) ?? [] where !rule.isKept { return rule.refusal(of: header) }
    let frames = Rule("maxFrames", maxFrames, "has \(header.frames) frames", header.frames <= maxFrames ?? .max)
    return frames.isKept ? nil : frames.refusal(of: header)
  }

  private func rules(width: Int, height: Int) -> [Rule] {
    let ratio = Double(max(width, height)) / Double(min(width, height))
    let (wide, high) = ("is \(width) pixels wide", "is \(height) pixels high")
    let area = "is \(width) x \(height) pixels"
    return [
      Rule("minWidth", minWidth, wide, width >= minWidth ?? 0),
      Rule("minHeight", minHeight, high, height >= minHeight ?? 0),
      Rule("maxWidth", maxWidth, wide, width <= maxWidth ?? .max),
      Rule("maxHeight", maxHeight, high, height <= maxHeight ?? .max),
      Rule("maxPixels", maxPixels, area, height <= (maxPixels ?? .max) / width),
      Rule("maxAspectRatio", maxAspectRatio, area, ratio <= maxAspectRatio ?? .infinity),
    ]
  }
}

/// A limit, and whether an image keeps it.
private struct Rule {
  let property: String
  let limit: Double
  /// Continues a sentence that begins with the image.
  let text: String
  let isKept: Bool

  init(_ property: String, _ limit: Int?, _ text: String, _ isKept: Bool) {
    self.init(property, limit.map { Double($0) }, text, isKept)
  }

  init(_ property: String, _ limit: Double?, _ text: String, _ isKept: Bool) {
    (self.property, self.limit, self.text, self.isKept) = (property, limit ?? 0, text, isKept)
  }

  func refusal(of header: ImageHeader) -> LoadError {
    let number = Int64(exactly: limit).map { "\($0)" } ?? "\(limit)"
    var error = LoadError(.unwanted, "the image \(text), and \(property) is \(number)")
    error.figures = ErrorFigures(width: header.upright?.width, height: header.upright?.height, frames: header.frames)
    (error.figures.wanted, error.figures.limit) = (property, limit)
    return error
  }
}

extension LoadRequest {
  /// The error for a stored image that is not wanted; nil if it is.
  func refusal(of response: StoredResponse) -> LoadError? {
    want?.refusal(of: response)
  }
}
