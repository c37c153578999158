/// The known image formats, which are recognised by content only.
public enum ImageFormat: String, Sendable, CaseIterable {
  case jpeg, png, gif, webp, avif, heic, jxl, jp2, tiff, bmp, ico, svg

  public var mediaType: String {
    switch self {
    case .ico: "image/vnd.microsoft.icon"
    case .svg: "image/svg+xml"
    default: "image/\(rawValue)"
    }
  }

  /// Whether the decoder can read all frames and not only the first.
  package var isReadFrameByFrame: Bool { [.gif, .webp, .png, .avif].contains(self) }

  /// The usual file extension, without the dot.
  public var fileExtension: String { self == .jpeg ? "jpg" : rawValue }
}
