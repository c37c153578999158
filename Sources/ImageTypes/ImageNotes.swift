/// Properties of an image that a decode has found. Their numbers are in the index and in the messages of decoders.
public struct ImageNotes: OptionSet, Sendable, Hashable {
  public let rawValue: Int

  public init(rawValue: Int) { self.rawValue = rawValue }

  /// The image lacks pixels or its end, and was decoded all the same, as in browsers.
  public static let damaged = ImageNotes(rawValue: 1)
  /// The image has the transfer function PQ (SMPTE ST 2084).
  public static let pq = ImageNotes(rawValue: 2)
  /// The image has the transfer function HLG (ITU-R BT.2100).
  public static let hlg = ImageNotes(rawValue: 4)
  /// The image has a gain map (ISO 21496-1).
  public static let gainMap = ImageNotes(rawValue: 8)

  package static let all: ImageNotes = [.damaged, .pq, .hlg, .gainMap]

  /// The kind of high dynamic range, by its name in results.
  public var hdr: String? { contains(.pq) ? "pq" : contains(.hlg) ? "hlg" : contains(.gainMap) ? "gainMap" : nil }
}
