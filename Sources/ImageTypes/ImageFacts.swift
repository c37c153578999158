/// A preview to show until the image is loaded.
public struct Placeholder: Sendable, Hashable {
  /// The ThumbHash, at most about 25 bytes, see https://evanw.github.io/thumbhash/.
  public let thumbHash: [UInt8]
  /// The mean colour as 0xRRGGBB.
  public let color: UInt32

  public init(thumbHash: [UInt8], color: UInt32) { (self.thumbHash, self.color) = (thumbHash, color) }
}

/// Facts about an image that a decoder computes when a host asks for them.
public struct FactSet: OptionSet, Sendable, Hashable {
  public let rawValue: Int
  public init(rawValue: Int) { self.rawValue = rawValue }
  public static let perceptualHash = FactSet(rawValue: 1)
  /// The fields of `EXIFField.others`.
  public static let exif = FactSet(rawValue: 2)
  /// The fields of `EXIFField.position`.
  public static let gps = FactSet(rawValue: 4)
  /// See `ContainerFacts`.
  public static let container = FactSet(rawValue: 8)

  /// The facts that there are.
  public init(perceptualHash: Bool, exif: Bool, gps: Bool, container: Bool) {
    self = []
    if perceptualHash { insert(.perceptualHash) }
    if exif { insert(.exif) }
    if gps { insert(.gps) }
    if container { insert(.container) }
  }

  /// All facts, with the names that hosts give them.
  public static let named: [(name: String, fact: FactSet)] = [
    ("container", .container), ("exif", .exif), ("gps", .gps), ("perceptualHash", .perceptualHash),
  ]
}

/// The facts that a decoder has computed. A fact that was not asked for is nil.
public struct ImageFacts: Sendable, Hashable {
  /// See `PerceptualHash`.
  public var perceptualHash: UInt64?
  /// The fields that the image has; empty without EXIF data.
  public var exif: [EXIFField: EXIFValue]?
  public var gps: [EXIFField: EXIFValue]?
  public var container: ContainerFacts?

  public init(
    perceptualHash: UInt64? = nil, exif: [EXIFField: EXIFValue]? = nil, gps: [EXIFField: EXIFValue]? = nil,
    container: ContainerFacts? = nil
  ) {
    (self.perceptualHash, self.exif, self.gps, self.container) = (perceptualHash, exif, gps, container)
  }

  /// The facts that were computed.
  public var known: FactSet {
    FactSet(perceptualHash: perceptualHash != nil, exif: exif != nil, gps: gps != nil, container: container != nil)
  }

  /// About the bytes of memory that the fields take.
  package var byteCount: Int {
    let name = container?.colorSpace?.utf8.count ?? 0
    return [exif, gps].compactMap(\.self).joined().reduce(name) { total, field in
      guard case .text(let text) = field.value else { return total + 32 }
      return total + 32 + text.utf8.count
    }
  }

  package func adding(_ other: ImageFacts) -> ImageFacts {
    ImageFacts(
      perceptualHash: other.perceptualHash ?? perceptualHash, exif: other.exif ?? exif, gps: other.gps ?? gps,
      container: other.container ?? container)
  }

  /// The facts that were asked for.
  package func only(_ facts: FactSet) -> ImageFacts {
    ImageFacts(
      perceptualHash: facts.contains(.perceptualHash) ? perceptualHash : nil, exif: facts.contains(.exif) ? exif : nil,
      gps: facts.contains(.gps) ? gps : nil, container: facts.contains(.container) ? container : nil)
  }
}
