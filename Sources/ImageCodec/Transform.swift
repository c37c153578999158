/// What is to be done with an image before it is delivered.
public struct Transform: Sendable, Hashable {
  public enum Fit: String, Sendable { case inside, contain, cover, fill }
  public enum Frames: String, Sendable { case first, all }

  public struct Crop: Sendable, Hashable {
    public var x: Int
    public var y: Int
    public var width: Int
    public var height: Int

    public init(x: Int, y: Int, width: Int, height: Int) {
      (self.x, self.y, self.width, self.height) = (x, y, width, height)
    }
  }

  public var width: Int?
  public var height: Int?
  public var fit = Fit.inside
  public var enlarge = false
  public var isOriented = true
  public var crop: Crop?
  public var format: ImageFormat?
  public var quality = 80
  public var frames = Frames.first
  public var background: UInt32 = 0xFFFFFF
  public var blur = 0.0
  public var isGrayscale = false
  public var cornerRadius = 0

  public init() {}

  /// Equal transforms have equal texts, other transforms have others.
  public var canonical: String {
    var parts: [String] = []
    if let width { parts.append("width=\(width)") }
    if let height { parts.append("height=\(height)") }
    if fit != .inside { parts.append("fit=\(fit.rawValue)") }
    if enlarge { parts.append("enlarge") }
    if !isOriented { parts.append("unoriented") }
    if let crop { parts.append("crop=\(crop.x),\(crop.y),\(crop.width),\(crop.height)") }
    if let format { parts.append("format=\(format.rawValue)") }
    if quality != 80 { parts.append("quality=\(quality)") }
    if frames != .first { parts.append("frames=\(frames.rawValue)") }
    if background != 0xFFFFFF { parts.append("background=\(background)") }
    if blur > 0 { parts.append("blur=\(blur)") }
    if isGrayscale { parts.append("grayscale") }
    if cornerRadius > 0 { parts.append("cornerRadius=\(cornerRadius)") }
    return parts.isEmpty ? "identity" : parts.joined(separator: "&")
  }

  public init?(canonical: String) {
    if canonical == "identity" { return }
    for part in canonical.split(separator: "&") {
      let pair = part.split(separator: "=", maxSplits: 1)
      let value = pair.count == 2 ? String(pair[1]) : ""
      switch pair[0] {
      case "width": width = Int(value)
      case "height": height = Int(value)
      case "fit":
        guard let named = Fit(rawValue: value) else { return nil }
        fit = named
      case "enlarge": enlarge = true
      case "unoriented": isOriented = false
      case "crop":
        let numbers = value.split(separator: ",").compactMap { Int($0) }
        guard numbers.count == 4 else { return nil }
        crop = Crop(x: numbers[0], y: numbers[1], width: numbers[2], height: numbers[3])
      case "format":
        guard let named = ImageFormat(rawValue: value) else { return nil }
        format = named
      case "quality":
        guard let number = Int(value) else { return nil }
        quality = number
      case "frames":
        guard let named = Frames(rawValue: value) else { return nil }
        frames = named
      case "background":
        guard let number = UInt32(value) else { return nil }
        background = number
      case "blur":
        guard let number = Double(value) else { return nil }
        blur = number
      case "grayscale": isGrayscale = true
      case "cornerRadius":
        guard let number = Int(value) else { return nil }
        cornerRadius = number
      default: return nil
      }
    }
  }
}
