/// One of the files that a decode makes of an image.
public struct Rendition: Sendable, Hashable {
  /// Has no effect on a stripped file.
  public var transform: Transform
  /// Whether the file is that of the image, without its metadata.
  public var isStripped = false
  /// The maximum size of the file in bytes; nil for none. The quality is lowered until the file fits.
  public var maxBytes: Int?
  /// The lowest quality that may be tried.
  public var minQuality: Int

  public init(transform: Transform, maxBytes: Int? = nil, minQuality: Int = Self.usualMinQuality) {
    (self.transform, self.maxBytes, self.minQuality) = (transform, maxBytes, minQuality)
  }

  /// Below it, every format shows its blocks.
  public static let usualMinQuality = 40
}

/// Several files from one decode, and what else the decode tells about the image.
public struct RenditionSet: Sendable, Hashable {
  public var renditions: [Rendition]
  public var facts: FactSet
  /// Whether every pixel of every frame must decode.
  public var checks: Bool

  public init(_ renditions: [Rendition], facts: FactSet = [], checks: Bool = false) {
    (self.renditions, self.facts, self.checks) = (renditions, facts, checks)
  }

  /// A message to a decoder has room for so many.
  public static let maxCount = 16
}

/// The search for the highest quality at which a file fits into a number of bytes. A pure value: `next` is tried,
/// and `add` gets the size of its file.
package struct QualitySearch {
  private let maxBytes: Int
  private let minQuality: Int
  /// The qualities that have been found to fit, and not to fit, nearest to each other.
  private var fitting: Int?
  private var failing: Int?
  private var triesLeft = Self.maxTries
  /// The quality to try; nil at the end.
  package private(set) var next: Int?

  /// The maximum number of files that are encoded.
  private static let maxTries = 5

  package init(maxBytes: Int, from quality: Int, downTo minQuality: Int) {
    (self.maxBytes, self.minQuality, next) = (maxBytes, min(minQuality, quality), quality)
  }

  /// Returns whether the file fits and no better one has been found.
  package mutating func add(byteCount: Int) -> Bool {
    guard let quality = next else { return false }
    triesLeft -= 1
    let fits = byteCount <= maxBytes
    if fits { fitting = quality } else { failing = quality }
    switch (fitting, failing) {
    case (nil, let failing?) where failing <= minQuality: next = nil
    // The last try must be the one that fits if any does.
    case (nil, _?) where triesLeft <= 1: next = triesLeft > 0 ? minQuality : nil
    case (let low, let high?):
      let middle = ((low ?? minQuality - 1) + high) / 2
      next = triesLeft > 0 && middle > (low ?? minQuality - 1) && middle < high ? middle : nil
    case (_, nil): next = nil
    }
    return fits
  }
}
