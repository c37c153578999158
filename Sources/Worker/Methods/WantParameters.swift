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
      maxAspectRatio: try params.number("maxAspectRatio", in: 1...1_000_000), formats: try formats(params))
  }

  private static func side(_ name: String, _ params: Parameters) throws(RPCError) -> Int? {
    try params.integer(name, in: 1...Int64(Int32.max)).map(Int.init)
  }

  private static func formats(_ params: Parameters) throws(RPCError) -> [String]? {
    guard let value = params.value("formats") else { return nil }
    let names = ImageFormat.allCases.map(\.rawValue)
    guard case .array(let elements) = value, !elements.isEmpty else { throw invalid(params, names) }
    var formats: [String] = []
    for element in elements {
      guard case .string(let name) = element, names.contains(name) else { throw invalid(params, names) }
      formats.append(name)
    }
    return formats
  }

  private static func invalid(_ params: Parameters, _ names: [String]) -> RPCError {
    let path = params.path("formats")
    return .invalidParams(
      member: path, "\(path) must be an array of one or more of \(names.joined(separator: ", "))")
  }
}
