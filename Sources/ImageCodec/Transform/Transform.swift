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
    /// All frames of an animation, which is written as WebP.
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

  /// The transform with the defaults: it only orients the image and encodes it again.
  public init() {}

  public static let sides = 1...65_535
  public static let qualities = 1...100
  public static let blurs = 0.0...250.0
  /// The permitted offsets of a crop, and below them its permitted sizes.
  public static let cropOffsets = -1_000_000_000...1_000_000_000
  public static let cropSides = 1...1_000_000_000
  /// The permitted numbers of a focal point.
  public static let fractions = 0.0...1.0
  /// The formats that a decoder may be able to write.
  public static let writableFormats = keptFormats + [.jxl]
  /// The formats of sources that a result has without `format`. A JPEG XL must be asked for, because few programs read
  /// it and some versions of libvips do not write it.
  static let keptFormats: [ImageFormat] = [.jpeg, .png, .webp, .avif]

  static let usualBackground: UInt32 = 0xFFFFFF
}

extension ImageFormat {
  /// The default quality. An AVIF of 60 looks like a JPEG of 80, and is smaller.
  package var usualQuality: Int { self == .avif ? 60 : 80 }
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
