public import ImageCodec
internal import ImageStore

/// What a decoder has to do before a load can be answered. An object, because most loads need nothing of the kind.
public final class DecodePlan: Sendable {
  /// What is made of the image; nil for the image as it is.
  public let transform: Transform?
  public let deliversPixels: Bool
  public let wantsPlaceholder: Bool
  /// Whether every pixel has to decode.
  public let checks: Bool
  /// What the result is stored as: a transform's canonical form. Empty for the image as it is, and for pixels, which
  /// are made anew each time.
  let variant: String

  /// Nil when nothing is to be done.
  public static func asked(
    transform: Transform?, deliversPixels: Bool = false, wantsPlaceholder: Bool = false, checks: Bool = false
  ) -> DecodePlan? {
    guard transform != nil || deliversPixels || wantsPlaceholder || checks else { return nil }
    return DecodePlan(transform, deliversPixels, wantsPlaceholder, checks)
  }

  private init(_ transform: Transform?, _ deliversPixels: Bool, _ wantsPlaceholder: Bool, _ checks: Bool) {
    self.transform = transform
    self.deliversPixels = deliversPixels
    self.wantsPlaceholder = wantsPlaceholder
    self.checks = checks
    variant = deliversPixels ? "" : transform?.canonical ?? ""
  }

  /// One thing that a decoder does at a time, in the order in which they are done.
  enum Step: Hashable, Sendable {
    case check
    /// Makes the variant.
    case encode
    case pixels
    case placeholder
  }

  /// What is to be done next with what is there of the image; nil when it can be delivered.
  func step(for response: StoredResponse) -> Step? {
    let metadata = response.metadata
    if checks, metadata?.isChecked != true { return .check }
    if deliversPixels { return .pixels }
    if response.variant != variant { return .encode }
    if wantsPlaceholder, metadata?.placeholder == nil { return .placeholder }
    return nil
  }

  /// Whether a stored variant can be of use, which cannot be checked any more.
  func accepts(variant response: StoredResponse) -> Bool {
    response.variant == variant && (!checks || response.metadata?.isChecked == true)
  }
}

extension LoadRequest {
  /// What is delivered, as it is stored: the original, or the variant of this name.
  var variant: String { processing?.variant ?? "" }

  /// Where the image as it was transferred is kept. One that only a variant is made of is not worth the memory, where
  /// there is a disk.
  func placesOfOriginal(hasDisk: Bool) -> Places {
    hasDisk && !variant.isEmpty && store.contains(.disk) ? store.subtracting(.memory) : store
  }
}
