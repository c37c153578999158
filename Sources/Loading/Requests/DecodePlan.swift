public import ImageCodec
internal import ImageStore

/// The decoder work needed before a load can be answered. A class, because most loads need none.
public final class DecodePlan: Sendable {
  /// The transform to apply; nil for the image unchanged.
  public let transform: Transform?
  public let deliversPixels: Bool
  public let wantsPlaceholder: Bool
  /// The facts of the original that the result contains.
  public let facts: FactSet
  /// Whether every pixel must decode (`validate: decode`).
  public let checks: Bool
  /// The other images with which the decodes may share a process; nil for the default.
  let isolation: DecodeTask.Isolation?
  /// The files to make from one decode, which also tells the rest; nil for one image at most.
  public let outputs: [OutputOrder]?
  /// The name under which the result is stored: the canonical form of the transform. Empty for the original, and for
  /// pixels, which are not stored.
  let variant: String

  /// Returns nil if nothing needs a decoder.
  public static func asked(
    transform: Transform?, deliversPixels: Bool = false, wantsPlaceholder: Bool = false, checks: Bool = false,
    facts: FactSet = [], isolation: DecodeTask.Isolation? = nil, outputs: [OutputOrder]? = nil
  ) -> DecodePlan? {
    guard
      transform != nil || deliversPixels || wantsPlaceholder || checks || !facts.isEmpty || outputs?.isEmpty == false
    else { return nil }
    // Facts alone may need no pixel.
    let isOfFacts = outputs?.isEmpty == true && !wantsPlaceholder && !checks
    return DecodePlan(
      transform, deliversPixels, wantsPlaceholder, checks, facts, isolation, isOfFacts ? nil : outputs)
  }

  private init(
    _ transform: Transform?, _ deliversPixels: Bool, _ wantsPlaceholder: Bool, _ checks: Bool, _ facts: FactSet,
    _ isolation: DecodeTask.Isolation?, _ outputs: [OutputOrder]?
  ) {
    (self.transform, self.deliversPixels, self.facts) = (transform, deliversPixels, facts)
    (self.wantsPlaceholder, self.checks, self.isolation) = (wantsPlaceholder, checks, isolation)
    self.outputs = outputs
    variant = deliversPixels ? "" : transform?.canonical ?? ""
  }

  /// One operation of a decoder, in the order in which they are performed.
  enum Step: Hashable, Sendable {
    case check
    /// Computes facts of the original.
    case facts(FactSet)
    /// Encodes the variant.
    case encode
    case pixels
    case placeholder
    /// Makes several files, and finds all that is asked about the original.
    case renditions(RenditionSet)
  }

  /// The next operation on the stored response; nil if it can be delivered.
  func step(for response: StoredResponse) -> Step? {
    let metadata = response.metadata
    let missing = facts.subtracting(metadata?.facts.known ?? [])
    if let outputs {
      return .renditions(
        RenditionSet(outputs.map(\.rendition), facts: missing, checks: checks && metadata?.isChecked != true))
    }
    if checks, metadata?.isChecked != true { return .check }
    if response.variant.isEmpty, !missing.isEmpty { return .facts(missing) }
    if deliversPixels { return .pixels }
    if response.variant != variant { return .encode }
    if wantsPlaceholder, metadata?.placeholder == nil { return .placeholder }
    return nil
  }

  /// Whether a stored variant can be used. The original can no longer be checked, so it must have been if a check is
  /// wanted, and its facts must be known.
  func accepts(variant response: StoredResponse) -> Bool {
    let metadata = response.metadata
    guard response.variant == variant, !checks || metadata?.isChecked == true else { return false }
    return facts.isEmpty || facts.isSubset(of: metadata?.facts.known ?? [])
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

/// One of several files that a load makes of its image.
public struct OutputOrder: Sendable, Hashable {
  /// The name of the output in the request and in the result.
  public var name: String
  public var rendition: Rendition
  /// Never `pixels`.
  public var delivery: LoadRequest.Delivery
  /// An absolute path to which the file is written.
  public var saveTo: String?
  /// The permissions of that file, whatever the umask is; nil for those of the umask.
  public var mode: UInt16?

  public init(
    name: String, rendition: Rendition, delivery: LoadRequest.Delivery, saveTo: String? = nil, mode: UInt16? = nil
  ) {
    (self.name, self.rendition, self.delivery, self.saveTo, self.mode) = (name, rendition, delivery, saveTo, mode)
  }
}
