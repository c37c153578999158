/// What decoding has told of a stored image. An object, because most have none.
public final class DecodeMetadata: Sendable, Equatable {
  /// What a variant was made of.
  public struct Source: Sendable, Equatable {
    /// SHA-256 of the original, 32 bytes. A variant of an original that has been replaced is none any more.
    public var digest: [UInt8]
    public var byteCount: Int64
    public var format: String
    /// Pixels as stored, before orientation.
    public var width: Int?
    public var height: Int?

    public init(digest: [UInt8], byteCount: Int64, format: String, width: Int?, height: Int?) {
      self.digest = digest
      self.byteCount = byteCount
      self.format = format
      self.width = width
      self.height = height
    }
  }

  /// What stands for the image until it is there.
  public struct Placeholder: Sendable, Equatable {
    public var thumbHash: [UInt8]
    /// The mean colour as 0xRRGGBB.
    public var color: UInt32

    public init(thumbHash: [UInt8], color: UInt32) {
      self.thumbHash = thumbHash
      self.color = color
    }
  }

  /// Nil for originals.
  public let source: Source?
  public let placeholder: Placeholder?
  /// Whether every pixel of the original is known to decode.
  public let isChecked: Bool
  /// Whether the original was found to lack something, and decodes all the same.
  public let isDamaged: Bool

  public init(
    source: Source? = nil, placeholder: Placeholder? = nil, isChecked: Bool = false, isDamaged: Bool = false
  ) {
    self.source = source
    self.placeholder = placeholder
    self.isChecked = isChecked
    self.isDamaged = isDamaged
  }

  /// Together with what another decode has told of the same image.
  public func adding(_ other: DecodeMetadata) -> DecodeMetadata {
    DecodeMetadata(
      source: other.source ?? source, placeholder: other.placeholder ?? placeholder,
      isChecked: other.isChecked || isChecked, isDamaged: other.isDamaged || isDamaged)
  }

  public static func == (left: DecodeMetadata, right: DecodeMetadata) -> Bool {
    left === right
      || left.source == right.source && left.placeholder == right.placeholder && left.isChecked == right.isChecked
        && left.isDamaged == right.isDamaged
  }
}

extension StoredResponse {
  /// The digest of the original: its own, or of what the variant was made of.
  public var originalDigest: [UInt8] { metadata?.source?.digest ?? digest }

  /// Whether the two are the same original, or made of it.
  public func sharesOriginal(with other: StoredResponse) -> Bool {
    varyKey == other.varyKey && originalDigest == other.originalDigest
  }

  /// Takes on what the other knows of the original that both are of: its header fields and times.
  mutating func adopt(responseOf other: StoredResponse) {
    headers = other.headers
    requestTime = other.requestTime
    responseTime = other.responseTime
    storedAt = other.storedAt
    validatedAt = other.validatedAt
    expiresAt = other.expiresAt
    finalURL = other.finalURL
    status = other.status
  }
}
