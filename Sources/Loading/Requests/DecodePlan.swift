public import ImageCodec
internal import ImageStore

/// The decoder work needed before a load can be answered. A class, because most loads need none.
public final class DecodePlan: Sendable {
  /// The transform to apply; nil for the image unchanged.
  public let transform: Transform?
  public let deliversPixels: Bool
  public let wantsPlaceholder: Bool
  /// Whether every pixel must decode (`validate: decode`).
  public let checks: Bool
  /// The name under which the result is stored: the canonical form of the transform. Empty for the original, and for
  /// pixels, which are not stored.
  let variant: String

  /// Returns nil if nothing needs a decoder.
  public static func asked(
    transform: Transform?, deliversPixels: Bool = false, wantsPlaceholder: Bool = false, checks: Bool = false
  ) -> DecodePlan? {
    guard transform != nil || deliversPixels || wantsPlaceholder || checks else { return nil }
    return DecodePlan(transform, deliversPixels, wantsPlaceholder, checks)
  }

  private init(_ transform: Transform?, _ deliversPixels: Bool, _ wantsPlaceholder: Bool, _ checks: Bool) {
    (self.transform, self.deliversPixels) = (transform, deliversPixels)
    (self.wantsPlaceholder, self.checks) = (wantsPlaceholder, checks)
    variant = deliversPixels ? "" : transform?.canonical ?? ""
  }

  /// One operation of a decoder, in the order in which they are performed.
  enum Step: Hashable, Sendable {
    case check
    /// Encodes the variant.
    case encode
    case pixels
    case placeholder
  }

  /// The next operation on the stored response; nil if it can be delivered.
  func step(for response: StoredResponse) -> Step? {
    let metadata = response.metadata
    if checks, metadata?.isChecked != true { return .check }
    if deliversPixels { return .pixels }
    if response.variant != variant { return .encode }
    if wantsPlaceholder, metadata?.placeholder == nil { return .placeholder }
    return nil
  }

  /// Whether a stored variant can be used. A variant can no longer be checked, so its original must have been if a
  /// check is wanted.
  func accepts(variant response: StoredResponse) -> Bool {
    response.variant == variant && (!checks || response.metadata?.isChecked == true)
  }
}

extension LoadRequest {
  /// The name of the stored content to deliver: a variant, or empty for the original.
  public var variant: String { processing?.variant ?? "" }

  /// The tiers that store the original. An original that is only the source of a variant goes to disk alone, to save
  /// memory.
  func tiersOfOriginal(hasDisk: Bool) -> Tiers {
    hasDisk && !variant.isEmpty && store.contains(.disk) ? store.subtracting(.memory) : store
  }
}
