/// The contents of an image file's header.
public struct ImageHeader: Sendable, Hashable {
  public let format: ImageFormat
  /// The stored width, before `orientation` is applied; nil if the header does not have it. Up to 2^32 - 1, so width x
  /// height may overflow an `Int`.
  public let width: Int?
  public let height: Int?
  /// The number of frames; 1 if there is only one, or if counting needs more than the headers.
  public let frames: Int
  /// The orientation as in EXIF, 1 to 8; 1 is upright. AVIF and HEIC rotations and mirrorings are converted to it.
  public let orientation: Int

  public init(_ format: ImageFormat, width: Int?, height: Int?, frames: Int = 1, orientation: Int = 1) {
    self.format = format
    (self.width, self.height) = (width, height)
    (self.frames, self.orientation) = (frames, orientation)
  }

  /// Reads the header of content that `Recognition` has recognised as `format`.
  ///
  /// Reads a bounded number of small pieces at any offset. Only GIF frames are counted through the whole file, up to a
  /// limit. Damage after the size fields is not an error.
  public static func read(_ source: any ByteSource, format: ImageFormat) throws(ImageHeaderError) -> ImageHeader {
    var reader = HeaderReader(source)
    return try read(&reader, format: format)
  }

  /// The position of the EXIF data of a JPEG, PNG, WebP or TIFF, from which `EXIFReader` reads; nil if there is none.
  package static func exifStart(_ source: any ByteSource, format: ImageFormat) -> Int? {
    if format == .tiff { return 0 }
    var reader = HeaderReader(source)
    _ = try? read(&reader, format: format)
    return reader.exifStart
  }

  private static func read(
    _ reader: inout HeaderReader, format: ImageFormat
  ) throws(ImageHeaderError) -> ImageHeader {
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

/// The reason that a file of a known format has no readable header. `description` may be shown in an error message.
public struct ImageHeaderError: Error, Hashable, CustomStringConvertible {
  public let description: String

  static let cut = ImageHeaderError(description: "the image ends within its header")

  /// The error for a header with an impossible value.
  static func impossible(_ description: String) -> ImageHeaderError { ImageHeaderError(description: description) }
}
