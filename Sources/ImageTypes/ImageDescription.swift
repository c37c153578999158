/// The facts about an image that its header tells.
public struct ImageHeader: Sendable, Hashable {
  public var format: ImageFormat
  /// The stored width, before `orientation` is applied; nil if the header does not have it. Up to 2^32 - 1, so width x
  /// height may overflow an `Int`.
  public var width: Int?
  public var height: Int?
  /// The number of frames; 1 if there is only one, or if counting needs more than the headers.
  public var frames: Int
  /// The orientation as in EXIF, 1 to 8; 1 is upright. AVIF and HEIC rotations and mirrorings are converted to it. 0 if
  /// it is not known, which is so only for the original of a variant that an older version stored.
  public var orientation: Int

  public init(_ format: ImageFormat, width: Int? = nil, height: Int? = nil, frames: Int = 1, orientation: Int = 1) {
    self.format = format
    (self.width, self.height) = (width, height)
    (self.frames, self.orientation) = (frames, orientation)
  }

  /// Whether rows and columns are exchanged in the upright image.
  public var isTurned: Bool { orientation >= 5 }

  /// The size after `orientation` is applied.
  public var upright: (width: Int, height: Int)? {
    guard let width, let height else { return nil }
    return isTurned ? (height, width) : (width, height)
  }
}

/// The content of a response: an image, or anything else if a load accepts it.
public struct ImageDescription: Sendable, Hashable {
  /// Nil if the content is not an image of a known format. Without a size if the header cannot be read.
  public var header: ImageHeader?
  /// That of the format; for other content, the one that was told.
  public var mediaType: String
  public var byteCount: Int64
  /// SHA-256, 32 bytes. Empty if it is not known.
  public var digest: [UInt8]

  /// - Parameter mediaType: if nil, that of the format.
  public init(_ header: ImageHeader? = nil, mediaType: String? = nil, byteCount: Int64 = 0, digest: [UInt8] = []) {
    self.header = header
    self.mediaType = mediaType ?? header?.format.mediaType ?? "application/octet-stream"
    (self.byteCount, self.digest) = (byteCount, digest)
  }

  public var format: ImageFormat? { header?.format }
}
