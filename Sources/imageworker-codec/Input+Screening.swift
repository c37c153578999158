internal import ImageCodec

extension Input {
  /// What libvips is to see of it. Refuses what would take it long however few pixels there are, and what it would make
  /// another picture of.
  func screened(_ format: ImageFormat) throws(DecodeError) -> Input {
    switch format {
    case .png: return try PNGScreening(bytes).screened().map(Input.init(copying:)) ?? self
    case .jpeg where JPEGScreening.scans(in: bytes) > Self.mostScans:
      throw .corrupt("the JPEG has more than \(Self.mostScans) scans")
    case .tiff where TIFFHeader.isPlainYCbCr(self):
      throw .unsupportedFormat("the decoder does not read TIFFs in YCbCr that are no JPEGs")
    default: return self
    }
  }

  /// Each goes over all pixels, and need not have more than a few bytes. Encoders make about ten.
  private static let mostScans = 100
}
