/// The changes to an image before it is delivered to the host.
///
/// They are applied in this order: orientation, crop, size, the rest. Transforms that ask for the same result have the
/// same `canonical` form, which is part of the cache key.
public struct Transform: Sendable, Hashable {
  /// The way the image fits the box of `width` and `height`. If only one is set, the other follows from the image.
  public enum Fit: String, Sendable, CaseIterable {
    /// Scaled to lie within the box, with the image's proportions.
    case inside
    /// As `inside`, with the rest of the box filled with the background.
    case contain
    /// Scaled to cover the whole box, with the image's proportions; the excess is cut, see `Focus`.
    case cover
    /// Stretched to the box.
    case fill
  }

  public enum Frames: String, Sendable, CaseIterable {
    case first
    /// All frames of an animation, which is written as WebP, or as GIF if that is asked for.
    case all
  }

  /// A part of the oriented source, in its pixels. A part outside the image is ignored.
  public struct Crop: Sendable, Hashable {
    public var x: Int
    public var y: Int
    public var width: Int
    public var height: Int

    public init(x: Int, y: Int, width: Int, height: Int) {
      (self.x, self.y, self.width, self.height) = (x, y, width, height)
    }
  }

  /// The part of the image that `Fit.cover` keeps.
  public enum Focus: Sendable, Hashable {
    /// The excess is cut equally on both sides.
    case center
    /// The middle of the result is as near as possible to this point of the cropped, oriented source. Both numbers are
    /// fractions of its sides: 0, 0 is the top left corner.
    case point(x: Double, y: Double)
    /// The part that libvips finds most likely to draw the eye: edges, skin and saturated colours.
    case attention
    /// The part with the highest entropy, as libvips finds it.
    case entropy

    /// Whether the position depends on the pixels.
    public var needsPixels: Bool { self == .attention || self == .entropy }
  }

  /// The box of the result, in pixels.
  public var width: Int?
  public var height: Int?
  public var fit = Fit.inside
  public var focus = Focus.center
  /// Whether a side may be scaled up.
  public var enlarge = false
  /// Whether the EXIF orientation is applied.
  public var isOriented = true
  public var crop: Crop?
  /// One of `writableFormats`; nil for the source's format if that is one of `keptFormats`.
  public var format: ImageFormat?
  /// 1 to 100, for formats that have a quality; nil for the format's default.
  public var quality: Int?
  public var frames = Frames.first
  /// The colour behind transparent pixels if the format has no alpha, and around the image with `contain`; 0xRRGGBB.
  public var background = Self.usualBackground
  /// The sigma of a Gaussian blur, in pixels of the result; 0 means no blur.
  public var blur = 0.0
  public var isGrayscale = false
  /// The radius in pixels of the result; 0 means no rounding. It is limited to half of the shorter side.
  public var cornerRadius = 0
  /// The fields of the image's EXIF data that the result keeps, some of `metadataFields`.
  public var metadata: Set<EXIFField> = []

  /// The transform with the defaults: it only orients the image and encodes it again.
  public init() {}

  /// All fields but the orientation, because the pixels are upright.
  public static let metadataFields = EXIFField.allCases.filter { $0 != .orientation }
  public static let sides = 1...65_535
  public static let qualities = 1...100
  public static let blurs = 0.0...250.0
  /// The permitted offsets of a crop, and below them its permitted sizes.
  public static let cropOffsets = -1_000_000_000...1_000_000_000
  public static let cropSides = 1...1_000_000_000
  /// The permitted numbers of a focal point.
  public static let fractions = 0.0...1.0
  /// The formats that a decoder may be able to write.
  public static let writableFormats = keptFormats + [.gif, .jxl]
  /// The formats of sources that a result has without `format`. A GIF must be asked for, because it has few colours, and
  /// a JPEG XL, because few programs read it and some versions of libvips do not write it.
  static let keptFormats: [ImageFormat] = [.jpeg, .png, .webp, .avif]

  static let usualBackground: UInt32 = 0xFFFFFF
}

extension ImageFormat {
  /// The default quality. An AVIF of 60 looks like a JPEG of 80, and is smaller.
  package var usualQuality: Int { self == .avif ? 60 : 80 }

  /// Whether a file in this format can be made smaller by a lower quality.
  package var hasQuality: Bool { ![.png, .gif].contains(self) }

  /// Whether a result in this format can have metadata.
  package var holdsMetadata: Bool { [.jpeg, .png, .webp, .avif].contains(self) }

  /// The maximum side of an image in this format.
  package var maxSide: Int {
    switch self {
    case .webp: 16383
    case .avif: 16384
    case .jpeg: 65500
    case .gif: 65535
    default: Int(Int32.max)
    }
  }
}

extension Transform {
  /// The format of the result.
  ///
  /// - Parameter frames: the number of frames of the result.
  public func outputFormat(of source: ImageFormat, hasAlpha: Bool, frames: Int) -> ImageFormat {
    if let format { return format }
    if frames > 1 { return .webp }
    if Self.keptFormats.contains(source) { return source }
    return hasAlpha || cornerRadius > 0 ? .png : .jpeg
  }
}

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
    if !metadata.isEmpty {
      let names = Self.metadataFields.filter(metadata.contains).map(\.rawValue)
      add("metadata", names.joined(separator: ":"))
    }
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
    case "metadata":
      let names = value.split(separator: ":", omittingEmptySubsequences: false)
      metadata = Set(Self.metadataFields.filter { names.contains(Substring($0.rawValue)) })
      return true
    default: return false
    }
  }

  /// Whether the quality has no effect. A WebP of artwork is lossless only if no quality is set.
  private func isUsual(_ quality: Int) -> Bool {
    switch format {
    case .png, .gif: true
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
