// The types of an image are part of this module's interface.
@_exported public import ImageTypes

/// The metadata of a stored image that decoding has found. A class, because most images have none.
public final class DecodeMetadata: Sendable, Equatable {
  /// The original that a variant was made from; nil for originals. A variant is valid only for the original with this
  /// digest.
  public let source: ImageDescription?
  public let placeholder: Placeholder?
  /// Whether every pixel of the original is known to decode.
  public let isChecked: Bool
  /// Notes on the original.
  public let notes: ImageNotes
  /// Facts of the original that hosts asked for. They are kept with images in memory, and computed again for those on
  /// disk.
  public let facts: ImageFacts

  public init(
    source: ImageDescription? = nil, placeholder: Placeholder? = nil, isChecked: Bool = false, notes: ImageNotes = [],
    facts: ImageFacts = ImageFacts()
  ) {
    self.source = source
    self.placeholder = placeholder
    self.isChecked = isChecked
    self.notes = notes
    self.facts = facts
  }

  /// Merges the metadata that another decode of the same image has found.
  public func adding(_ other: DecodeMetadata) -> DecodeMetadata {
    DecodeMetadata(
      source: other.source ?? source, placeholder: other.placeholder ?? placeholder,
      isChecked: other.isChecked || isChecked, notes: notes.union(other.notes),
      facts: facts.adding(other.facts))
  }

  public static func == (left: DecodeMetadata, right: DecodeMetadata) -> Bool {
    left === right
      || left.source == right.source && left.placeholder == right.placeholder && left.isChecked == right.isChecked
        && left.notes == right.notes && left.facts == right.facts
  }
}

extension StoredResponse {
  /// The digest of the original: of this response, or of the original that the variant was made from.
  public var originalDigest: [UInt8] { metadata?.source?.digest ?? content.digest }

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
