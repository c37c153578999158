internal import ImageCodec
internal import LineRPC
internal import Loading

/// The properties that an image must have (`want`).
enum WantParameters {
  private static let known = ["minWidth", "minHeight", "maxAspectRatio", "formats"]

  static func read(_ params: Parameters) throws(RPCError) -> WantedImage? {
    guard let params = try params.object("want", known: known) else { return nil }
    return WantedImage(
      minWidth: try side("minWidth", params), minHeight: try side("minHeight", params),
      maxAspectRatio: try params.number("maxAspectRatio", in: 1...1_000_000),
      formats: try params.names("formats", among: ImageFormat.allCases.map(\.rawValue))?
        .compactMap { ImageFormat(rawValue: $0) })
  }

  private static func side(_ name: String, _ params: Parameters) throws(RPCError) -> Int? {
    try params.integer(name, in: 1...Int64(Int32.max)).map(Int.init)
  }
}
