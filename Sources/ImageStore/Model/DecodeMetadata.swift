/// The metadata of a stored image that decoding has found. A class, because most images have none.
public final class DecodeMetadata: Sendable, Equatable {
  /// The original that a variant was made from.
  public struct Source: Sendable, Equatable {
    /// SHA-256 of the original, 32 bytes. A variant is valid only for the original with this digest.
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

  /// The placeholder that a host shows until the image is loaded.
  public struct Placeholder: Sendable, Equatable {
    public var thumbHash: [UInt8]
    /// The mean colour as 0xRRGGBB.
    public var color: UInt32

    public init(thumbHash: [UInt8], color: UInt32) {
      self.thumbHash = thumbHash
      self.color = color
    }
  }

  /// Facts of the original that hosts asked for; nil if not known. They are kept with images in memory, and computed
  /// again for those on disk.
  public struct Facts: Sendable, Equatable {
    public enum Value: Sendable, Equatable {
      case text(String)
      case number(Double)
    }

    /// A field of the EXIF data.
    public struct Field: Sendable, Equatable {
      public var name: String
      public var value: Value

      public init(name: String, value: Value) { (self.name, self.value) = (name, value) }
    }

    public var perceptualHash: UInt64?
    /// Empty if the image has none of the fields.
    public var exif: [Field]?
    /// The position of the camera; empty if the image does not have it.
    public var gps: [Field]?

    public init(perceptualHash: UInt64? = nil, exif: [Field]? = nil, gps: [Field]? = nil) {
      (self.perceptualHash, self.exif, self.gps) = (perceptualHash, exif, gps)
    }

    /// About the bytes of memory that the fields take.
    var byteCount: Int {
      [exif, gps].reduce(0) { total, fields in
        (fields ?? []).reduce(total) { total, field in
          guard case .text(let text) = field.value else { return total + MemoryLayout<Field>.stride }
          return total + MemoryLayout<Field>.stride + text.utf8.count
        }
      }
    }

    func adding(_ other: Facts) -> Facts {
      Facts(perceptualHash: other.perceptualHash ?? perceptualHash, exif: other.exif ?? exif, gps: other.gps ?? gps)
    }
  }

  /// Nil for originals.
  public let source: Source?
  public let placeholder: Placeholder?
  /// Whether every pixel of the original is known to decode.
  public let isChecked: Bool
  /// Whether the original is incomplete or damaged but decodes.
  public let isDamaged: Bool
  public let facts: Facts

  public init(
    source: Source? = nil, placeholder: Placeholder? = nil, isChecked: Bool = false, isDamaged: Bool = false,
    facts: Facts = Facts()
  ) {
    self.source = source
    self.placeholder = placeholder
    self.isChecked = isChecked
    self.isDamaged = isDamaged
    self.facts = facts
  }

  /// Merges the metadata that another decode of the same image has found.
  public func adding(_ other: DecodeMetadata) -> DecodeMetadata {
    DecodeMetadata(
      source: other.source ?? source, placeholder: other.placeholder ?? placeholder,
      isChecked: other.isChecked || isChecked, isDamaged: other.isDamaged || isDamaged,
      facts: facts.adding(other.facts))
  }

  public static func == (left: DecodeMetadata, right: DecodeMetadata) -> Bool {
    left === right
      || left.source == right.source && left.placeholder == right.placeholder && left.isChecked == right.isChecked
        && left.isDamaged == right.isDamaged && left.facts == right.facts
  }
}

extension StoredResponse {
  /// The digest of the original: of this response, or of the original that the variant was made from.
  public var originalDigest: [UInt8] { metadata?.source?.digest ?? digest }

  /// Whether both are the same original or were made from it.
  public func sharesOriginal(with other: StoredResponse) -> Bool {
    varyKey == other.varyKey && originalDigest == other.originalDigest
  }

  /// Copies the header fields and times of another response of the same original.
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
