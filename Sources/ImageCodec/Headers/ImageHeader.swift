/// What the header of an image file says.
public struct ImageHeader: Sendable, Hashable {
  public let format: ImageFormat
  /// Pixels as stored, before `orientation` is applied; nil where the header does not tell. Up to 2^32 - 1, so
  /// that their product need not be an `Int`.
  public let width: Int?
  public let height: Int?
  /// 1 where there is one, or where counting them takes more than the headers.
  public let frames: Int
  /// As in EXIF, 1 to 8; 1 is upright. For AVIF and HEIC it stands for their own rotation and mirroring.
  public let orientation: Int

  public init(_ format: ImageFormat, width: Int?, height: Int?, frames: Int = 1, orientation: Int = 1) {
    self.format = format
    (self.width, self.height) = (width, height)
    (self.frames, self.orientation) = (frames, orientation)
  }

  /// Reads the header of a content that `Recognition` has recognised as `format`.
  ///
  /// Reads a bounded number of small pieces, wherever they stand; only GIF frames are counted through the whole file,
  /// to a limit. Damage behind what gives the size is no error.
  public static func read(_ source: any ByteSource, format: ImageFormat) throws(ImageHeaderError) -> ImageHeader {
    var reader = HeaderReader(source)
    let header =
      switch format {
      case .jpeg: try JPEGHeader.read(&reader)
      case .png: try PNGHeader.read(&reader)
      case .gif: try GIFHeader.read(&reader)
      case .webp: try WebPHeader.read(&reader)
      case .avif, .heic: try HEIFHeader.read(&reader, format: format)
      case .jxl: try JXLHeader.read(&reader)
      case .jp2: try JP2Header.read(&reader)
      case .tiff: try TIFFHeader.read(&reader)
      case .bmp: try BMPHeader.read(&reader)
      case .ico: try ICOHeader.read(&reader)
      case .svg: try SVGHeader.read(&reader)
      }
    if let width = header.width, let height = header.height, width < 1 || height < 1 {
      throw .impossible("the image has no pixels (\(width) x \(height))")
    }
    return header
  }
}

/// Why a file of a known format has no readable header. `description` is fit for an error message.
public struct ImageHeaderError: Error, Hashable, CustomStringConvertible {
  public enum Kind: Sendable, Hashable {
    /// The content ends before its header does.
    case cut
    /// The header says what cannot be.
    case impossible
  }

  public let kind: Kind
  public let description: String

  static let cut = ImageHeaderError(kind: .cut, description: "the image ends within its header")

  static func impossible(_ description: String) -> ImageHeaderError {
    ImageHeaderError(kind: .impossible, description: description)
  }
}
