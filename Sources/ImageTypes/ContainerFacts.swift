/// Facts that the structure of an image file tells. A member is nil if the file does not tell it, or not for certain.
public struct ContainerFacts: Sendable, Hashable {
  /// Whether the file stores alpha or a transparent colour.
  public var hasAlpha: Bool?
  /// The description of the ICC profile; without a profile, one of `sRGB`, `Display P3`, `Rec. 2020`, `gray`, `CMYK` and
  /// `Lab`.
  public var colorSpace: String?
  /// The bits of a colour sample as stored, 1 to 64.
  public var bitDepth: Int?
  /// Whether EXIF or XMP has a position, valid or not.
  public var hasGPS: Bool?
  /// Whether a C2PA manifest is embedded.
  public var c2pa: Bool?

  public init(
    hasAlpha: Bool? = nil, colorSpace: String? = nil, bitDepth: Int? = nil, hasGPS: Bool? = nil, c2pa: Bool? = nil
  ) {
    (self.hasAlpha, self.colorSpace, self.bitDepth) = (hasAlpha, colorSpace, bitDepth)
    (self.hasGPS, self.c2pa) = (hasGPS, c2pa)
  }
}
