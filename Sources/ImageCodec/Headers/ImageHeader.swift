// The types of an image are part of this module's interface.
@_exported public import ImageTypes

extension ImageHeader {
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

/// One of the eight orientations of an image: an optional horizontal mirroring, then quarter turns to the left.
struct Orientation: Hashable {
  private var isMirrored = false
  private var leftTurns = 0

  mutating func turnLeft(times: Int) { leftTurns = (leftTurns + times) % 4 }

  /// Mirrors the oriented image, left to right or top to bottom.
  mutating func mirror(isLeftRight: Bool) {
    // Swapping a mirroring with a turn reverses the turn. Top to bottom is left to right plus a half turn.
    leftTurns = (4 - leftTurns + (isLeftRight ? 0 : 2)) % 4
    isMirrored.toggle()
  }

  /// The value of EXIF's orientation tag for this orientation.
  var exifValue: Int { (isMirrored ? [2, 5, 4, 7] : [1, 8, 3, 6])[leftTurns] }

  /// The inverse of an orientation; only quarter turns are not their own inverse.
  static func exifValue(undoing value: Int) -> Int { value == 6 ? 8 : value == 8 ? 6 : value }
}
