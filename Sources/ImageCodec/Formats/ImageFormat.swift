/// The formats that the worker knows, told by content only.
public enum ImageFormat: String, Sendable, CaseIterable {
  case jpeg, png, gif, webp, avif, heic, jxl, jp2, tiff, bmp, ico, svg

  public var mediaType: String {
    switch self {
    case .ico: "image/vnd.microsoft.icon"
    case .svg: "image/svg+xml"
    default: "image/\(rawValue)"
    }
  }

  /// Whether the decoder can read all frames, and not only the first.
  package var isReadFrameByFrame: Bool { [.gif, .webp, .png, .avif].contains(self) }

  /// The usual extension, without its dot.
  public var fileExtension: String { self == .jpeg ? "jpg" : rawValue }
}
