/// What came of a decode.
public struct Decoded: Sendable, Hashable {
  /// Of the file that was written; 0 without one.
  public var bytes = 0
  /// Of what was written; nil for pixels, and without a file.
  public var format: ImageFormat?
  public var width = 0
  public var height = 0
  public var frames = 1
  /// Of pixels: 1, 3 or 4. A row has `width * channels` bytes.
  public var channels = 0
  /// The source's pixels, upright unless the transform says otherwise.
  public var sourceWidth = 0
  public var sourceHeight = 0
  public var placeholder: Placeholder?
  /// Whether what was read of the source lacked pixels, or its end, and decodes as in browsers all the same.
  public var isDamaged = false

  public init() {}
}

/// What stands for an image until it is there.
public struct Placeholder: Sendable, Hashable {
  /// At most 25 bytes or so, see https://evanw.github.io/thumbhash/.
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
