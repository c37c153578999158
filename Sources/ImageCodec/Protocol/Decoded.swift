/// The result of a decode.
public struct Decoded: Sendable, Hashable {
  /// The size of the file that was written; 0 without one.
  public var bytes = 0
  /// The format of the file that was written; nil for pixels, and without a file.
  public var format: ImageFormat?
  public var width = 0
  public var height = 0
  public var frames = 1
  /// The channels of pixels: 1, 3 or 4. A row has `width * channels` bytes.
  public var channels = 0
  /// The width of the source, after orientation unless the transform turns that off.
  public var sourceWidth = 0
  public var sourceHeight = 0
  public var placeholder: Placeholder?
  public var facts = ImageFacts()
  /// Whether the decoded part of the source lacked pixels or its end, and was decoded all the same, as in browsers.
  public var isDamaged = false

  public init() {}
}

/// A preview to show until the image is loaded.
public struct Placeholder: Sendable, Hashable {
  /// The ThumbHash, at most about 25 bytes, see https://evanw.github.io/thumbhash/.
  public let thumbHash: [UInt8]
  /// The mean colour as 0xRRGGBB.
  public let color: UInt32

  public init(thumbHash: [UInt8], color: UInt32) { (self.thumbHash, self.color) = (thumbHash, color) }
}

/// The formats that the decoder's libvips can read and write.
public struct CodecFormats: Sendable, Hashable {
  public var decode: [ImageFormat] = []
  public var encode: [ImageFormat] = []

  public init(decode: [ImageFormat] = [], encode: [ImageFormat] = []) { (self.decode, self.encode) = (decode, encode) }
}
