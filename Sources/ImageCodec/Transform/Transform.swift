/// What is made of an image on its way to the host: how it is laid, cut, sized and written.
///
/// Carried out in this order: orientation, crop, size, the rest. Two transforms that ask for the same thing have the
/// same `canonical` form, by which their result is known in the cache.
public struct Transform: Sendable, Hashable {
  /// How the image goes into the box of `width` and `height`. With one of them only, the other follows from the image.
  public enum Fit: String, Sendable, CaseIterable {
    /// Within the box, in the image's proportions.
    case inside
    /// As `inside`; the rest of the box is filled with the background.
    case contain
    /// Over the whole box, in the image's proportions; what stands out is cut away on both sides alike.
    case cover
    /// Stretched to the box.
    case fill
  }

  public enum Frames: String, Sendable, CaseIterable {
    case first
    /// Of an animation, which is written as WebP.
    case all
  }

  /// A part of the oriented source, in its pixels. It may stand out of the image: what is outside is left away.
  public struct Crop: Sendable, Hashable {
    public var x: Int
    public var y: Int
    public var width: Int
    public var height: Int

    public init(x: Int, y: Int, width: Int, height: Int) {
      self.x = x
      self.y = y
      self.width = width
      self.height = height
    }
  }

  /// The box of the result, in pixels.
  public var width: Int?
  public var height: Int?
  public var fit = Fit.inside
  /// Whether a side may be scaled up.
  public var enlarge = false
  /// Whether the image is laid as its EXIF orientation says.
  public var isOriented = true
  public var crop: Crop?
  /// One of `writableFormats`; nil for the source's where it can be written.
  public var format: ImageFormat?
  /// 1 to 100, for formats that have one; nil for the format's usual one.
  public var quality: Int?
  public var frames = Frames.first
  /// What lies under transparent pixels where the format has none, and around the image with `contain`; 0xRRGGBB.
  public var background = Self.usualBackground
  /// Sigma of a Gaussian, in pixels of the result; 0 is none.
  public var blur = 0.0
  public var isGrayscale = false
  /// In pixels of the result; 0 is none. At most half of the shorter side counts.
  public var cornerRadius = 0

  /// Nothing but what every transform does: the image is laid upright and written anew.
  public init() {}

  public static let sides = 1...65_535
  public static let qualities = 1...100
  public static let blurs = 0.0...250.0
  /// Where a crop may begin, and how large it may be.
  public static let cropOffsets = -1_000_000_000...1_000_000_000
  public static let cropSides = 1...1_000_000_000
  public static let writableFormats: [ImageFormat] = [.jpeg, .png, .webp, .avif]

  static let usualBackground: UInt32 = 0xFFFFFF
}

extension ImageFormat {
  /// The quality that a result has if none is asked for: an AVIF of 60 looks like a JPEG of 80, and is smaller.
  package var usualQuality: Int { self == .avif ? 60 : 80 }
}

extension Transform {
  /// The format of the result.
  ///
  /// - Parameter frames: how many the result has.
  public func outputFormat(of source: ImageFormat, hasAlpha: Bool, frames: Int) -> ImageFormat {
    if let format { return format }
    if frames > 1 { return .webp }
    if Self.writableFormats.contains(source) { return source }
    return hasAlpha || cornerRadius > 0 ? .png : .jpeg
  }
}
