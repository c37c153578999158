internal import ImageCodec
internal import LineRPC

/// The parameters of a transform.
enum TransformParameters {
  private static let known = [
    "width", "height", "fit", "enlarge", "rotate", "crop", "format", "quality", "frames", "background", "blur",
    "grayscale", "cornerRadius", "metadata",
  ]

  /// The transform, or nil if the request has none. Errors name a member by its path, such as `transform.width`.
  static func read(_ params: Parameters) throws(RPCError) -> Transform? {
    guard let params = try params.object("transform", known: known) else { return nil }
    var transform = Transform()
    transform.width = try params.integer("width", in: Transform.sides)
    transform.height = try params.integer("height", in: Transform.sides)
    transform.fit = try fit(params, transform)
    transform.enlarge = try params.flag("enlarge") ?? false
    transform.isOriented = try params.choice("rotate", named: [("auto", true), ("none", false)]) ?? true
    try readCrop(params, into: &transform)
    transform.format = try params.choice("format", named: formats) ?? nil
    transform.quality = try params.integer("quality", in: Transform.qualities)
    transform.frames = try params.choice("frames") ?? transform.frames
    if transform.frames == .all, let format = transform.format, ![.webp, .gif].contains(format) {
      throw params.refusal(of: "frames", "all can only be encoded as webp or gif")
    }
    transform.background = try color(params, "background") ?? transform.background
    transform.blur = try params.number("blur", in: Transform.blurs) ?? 0
    transform.isGrayscale = try params.flag("grayscale") ?? false
    transform.cornerRadius = try params.integer("cornerRadius", in: 0...Transform.sides.upperBound) ?? 0
    try readMetadata(params, into: &transform)
    return transform
  }

  /// The names are those of the facts.
  private static func readMetadata(_ params: Parameters, into transform: inout Transform) throws(RPCError) {
    let fields = Transform.metadataFields.filter { !$0.isPosition }
    guard let names = try params.names("metadata", among: fields.map(\.rawValue) + ["gps"]) else { return }
    if let format = transform.format, !format.holdsMetadata {
      throw params.refusal(of: "metadata", "can be written to jpeg, png, webp and avif, and not to \(format.rawValue)")
    }
    transform.metadata = Set(fields.filter { names.contains($0.rawValue) })
    if names.contains("gps") { transform.metadata.formUnion(EXIFField.position) }
  }

  /// Refuses a fit that has no effect, since it needs a box.
  private static func fit(_ params: Parameters, _ transform: Transform) throws(RPCError) -> Transform.Fit {
    guard let fit: Transform.Fit = try params.choice("fit") else { return transform.fit }
    guard fit == .inside || (transform.width != nil && transform.height != nil) else {
      throw params.refusal(of: "fit", "\(fit.rawValue) needs width and height")
    }
    return fit
  }

  /// Reads a part of the source, or the part that a cover keeps. An object without sides is a focal point.
  private static func readCrop(_ params: Parameters, into transform: inout Transform) throws(RPCError) {
    let forms = params.refusal(
      of: "crop", "must be attention, entropy, a point {x, y} or a rectangle {x, y, width, height}")
    switch params.value("crop") {
    case nil: return
    case .string:
      let named: [(String, Transform.Focus)] = [("attention", .attention), ("entropy", .entropy)]
      guard let focus = try? params.choice("crop", named: named) else { throw forms }
      transform.focus = focus
    case .object(let object) where !object.members.contains { ["width", "height"].contains($0.name) }:
      guard let point = try params.object("crop", known: ["x", "y", "width", "height"]) else { return }
      transform.focus = .point(x: try fraction(point, "x"), y: try fraction(point, "y"))
    case .object: return transform.crop = try part(params)
    default: throw forms
    }
    guard transform.fit == .cover else {
      throw params.refusal(
        of: "crop", "needs fit cover with width and height, unless it is a rectangle {x, y, width, height}")
    }
  }

  private static func fraction(_ point: Parameters, _ name: String) throws(RPCError) -> Double {
    guard let number = try? point.number(name, in: Transform.fractions) else {
      throw point.refusal(
        of: name, "of a point must be a fraction from 0 to 1; a rectangle also needs width and height")
    }
    // A negative zero becomes zero.
    return number + 0
  }

  private static func part(_ params: Parameters) throws(RPCError) -> Transform.Crop? {
    guard let params = try params.object("crop", known: ["x", "y", "width", "height"]) else { return nil }
    return Transform.Crop(
      x: try params.needed("x", in: Transform.cropOffsets), y: try params.needed("y", in: Transform.cropOffsets),
      width: try params.needed("width", in: Transform.cropSides),
      height: try params.needed("height", in: Transform.cropSides))
  }

  private static func color(_ params: Parameters, _ name: String) throws(RPCError) -> UInt32? {
    guard let text = try params.string(name) else { return nil }
    let digits = text.dropFirst()
    guard text.utf8.count == 7, text.hasPrefix("#"), digits.allSatisfy(\.isHexDigit),
      let color = UInt32(digits, radix: 16)
    else { throw params.refusal(of: name, "must be a colour such as #ffffff") }
    return color
  }

  private static let formats: [(String, ImageFormat?)] =
    [("keep", nil)] + [ImageFormat.jpeg, .png, .webp, .avif, .gif, .jxl].map { ($0.rawValue, $0) }
}

extension Parameters {
  fileprivate func integer(_ name: String, in range: ClosedRange<Int>) throws(RPCError) -> Int? {
    try integer(name, in: Int64(range.lowerBound)...Int64(range.upperBound)).map(Int.init)
  }

  fileprivate func needed(_ name: String, in range: ClosedRange<Int>) throws(RPCError) -> Int {
    guard let number = try integer(name, in: range) else {
      throw refusal(of: name, "must be given")
    }
    return number
  }
}
