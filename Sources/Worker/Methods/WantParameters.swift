internal import ImageCodec
internal import LineRPC
internal import Loading

/// The properties that an image must have (`want`).
enum WantParameters {
  private static let known = [
    "minWidth", "minHeight", "maxWidth", "maxHeight", "maxPixels", "maxFrames", "maxAspectRatio", "formats",
  ]

  static func read(_ params: Parameters) throws(RPCError) -> WantedImage? {
    guard let params = try params.object("want", known: known) else { return nil }
    return WantedImage(
      minWidth: try count("minWidth", params), minHeight: try count("minHeight", params),
      maxWidth: try count("maxWidth", params), maxHeight: try count("maxHeight", params),
      maxPixels: try count("maxPixels", params, max: 1 << 53 - 1), maxFrames: try count("maxFrames", params),
      maxAspectRatio: try params.number("maxAspectRatio", in: 1...1_000_000),
      formats: try params.names("formats", among: ImageFormat.allCases.map(\.rawValue))?
        .compactMap { ImageFormat(rawValue: $0) })
  }

  private static func count(
    _ name: String, _ params: Parameters, max: Int64 = Int64(Int32.max)
  ) throws(RPCError) -> Int? {
    try params.integer(name, in: 1...max).map(Int.init)
  }
}
