/// The transform as text, for the cache key and for requests to a decoder.
extension Transform {
  /// Must change when the same transform gives other pixels than before, so that results of older versions are not
  /// served.
  private static let version = "v3"

  /// The options that differ from the defaults and have an effect, in a fixed order. ASCII without spaces. Never empty,
  /// because the empty text names the original.
  public var canonical: String {
    let hasBox = width != nil && height != nil
    let fit = hasBox ? fit : .inside
    var text = Self.version
    func add(_ name: String, _ value: String) { text += ",\(name)=\(value)" }
    if !isOriented { add("rotate", "none") }
    if let crop { add("crop", "\(crop.x):\(crop.y):\(crop.width):\(crop.height)") }
    if let width { add("w", "\(width)") }
    if let height { add("h", "\(height)") }
    if fit != .inside { add("fit", fit.rawValue) }
    if fit == .cover, let focus = focus.canonical { add("focus", focus) }
    if enlarge, width != nil || height != nil { add("enlarge", "1") }
    if blur != 0 { add("blur", "\(blur)") }
    if isGrayscale { add("gray", "1") }
    if cornerRadius != 0 { add("radius", "\(cornerRadius)") }
    if background != Self.usualBackground, fit == .contain || format == nil || format == .jpeg {
      add("background", Self.hexadecimal(background))
    }
    if let format { add("format", format.rawValue) }
    if let quality, !isUsual(quality) { add("quality", "\(quality)") }
    if frames != .first { add("frames", frames.rawValue) }
    return text
  }

  /// Parses a canonical form. Nil for any other text.
  public init?(canonical text: String) {
    self.init()
    var fields = text.split(separator: ",", omittingEmptySubsequences: false)[...]
    guard fields.popFirst() ?? "" == Self.version else { return nil }
    for field in fields {
      let parts = field.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, set(parts[0], to: parts[1]) else { return nil }
    }
    // A transform has only one text: its order, defaults and numbers must be those that `canonical` writes.
    guard canonical == text else { return nil }
  }

  private mutating func set(_ name: Substring, to value: Substring) -> Bool {
    func number(in range: ClosedRange<Int>) -> Int? { Int(value).flatMap { range.contains($0) ? $0 : nil } }
    switch name {
    case "rotate":
      isOriented = false
      return value == "none"
    case "crop":
      let numbers = value.split(separator: ":", omittingEmptySubsequences: false).compactMap { Int($0) }
      guard numbers.count == 4, numbers[..<2].allSatisfy(Self.cropOffsets.contains),
        numbers[2...].allSatisfy(Self.cropSides.contains)
      else { return false }
      crop = Crop(x: numbers[0], y: numbers[1], width: numbers[2], height: numbers[3])
      return true
    case "w":
      width = number(in: Self.sides)
      return width != nil
    case "h":
      height = number(in: Self.sides)
      return height != nil
    case "fit":
      guard let fit = Fit(rawValue: String(value)) else { return false }
      self.fit = fit
      return true
    case "focus":
      guard let focus = Focus(canonical: value) else { return false }
      self.focus = focus
      return true
    case "enlarge":
      enlarge = value == "1"
      return enlarge
    case "blur":
      guard let sigma = Double(value), Self.blurs.contains(sigma) else { return false }
      blur = sigma
      return true
    case "gray":
      isGrayscale = value == "1"
      return isGrayscale
    case "radius":
      guard let radius = number(in: Self.sides) else { return false }
      cornerRadius = radius
      return true
    case "background":
      guard value.utf8.count == 6, let color = UInt32(value, radix: 16) else { return false }
      background = color
      return true
    case "format":
      format = ImageFormat(rawValue: String(value)).flatMap { Self.writableFormats.contains($0) ? $0 : nil }
      return format != nil
    case "quality":
      guard let quality = number(in: Self.qualities) else { return false }
      self.quality = quality
      return true
    case "frames":
      guard let frames = Frames(rawValue: String(value)) else { return false }
      self.frames = frames
      return true
    default: return false
    }
  }

  /// Whether the quality has no effect. A WebP of artwork is lossless only if no quality is set.
  private func isUsual(_ quality: Int) -> Bool {
    switch format {
    case .png: true
    case .jpeg, .avif: quality == format?.usualQuality
    default: false
    }
  }

  /// The colour as six hexadecimal digits.
  private static func hexadecimal(_ color: UInt32) -> String {
    let digits = String(color & 0xFFFFFF, radix: 16)
    return String(repeating: "0", count: 6 - digits.count) + digits
  }
}

extension Transform.Focus {
  /// Nil for the centre, also if it is given as a point.
  fileprivate var canonical: String? {
    switch self {
    case .center, .point(x: 0.5, y: 0.5): nil
    case .point(let x, let y): "\(x):\(y)"
    case .attention: "attention"
    case .entropy: "entropy"
    }
  }

  fileprivate init?(canonical text: Substring) {
    switch text {
    case "attention": self = .attention
    case "entropy": self = .entropy
    default:
      let numbers = text.split(separator: ":", omittingEmptySubsequences: false).map { Double($0) ?? -1 }
      guard numbers.count == 2, numbers.allSatisfy(Transform.fractions.contains) else { return nil }
      self = .point(x: numbers[0], y: numbers[1])
    }
  }
}
