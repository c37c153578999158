internal import CVips
internal import ImageCodec

/// The facts of an image, of the first frame of an animation.
extension Source {
  func facts(_ wanted: FactSet) throws -> ImageFacts {
    var facts = ImageFacts()
    if wanted.contains(.perceptualHash) { facts.perceptualHash = try perceptualHash() }
    if !wanted.isDisjoint(with: [.exif, .gps]) {
      let fields = exif()
      if wanted.contains(.exif) { facts.exif = fields.filter { !$0.key.isPosition } }
      if wanted.contains(.gps) { facts.gps = fields.filter(\.key.isPosition) }
    }
    return facts
  }

  /// The fields of the EXIF data that libvips or libavif returns, or that are at a known place of the file. Empty
  /// without such data.
  private func exif() -> [EXIFField: EXIFValue] {
    let fields = Set(EXIFField.allCases)
    switch format {
    case .jpeg, .png, .webp, .tiff:
      return ImageHeader.exifStart(input, format: format).map { EXIFReader.read(input, at: $0, fields) } ?? [:]
    case .heic: return EXIFReader.read(picture.exif, fields)
    case .avif: return EXIFReader.read(AVIFReader.exif(of: input), fields)
    case .gif, .bmp, .ico, .svg, .jxl, .jp2: return [:]
    }
  }

  /// The hash of the pixels as stored: neither the EXIF orientation nor a colour profile is applied, and alpha is
  /// ignored, as in Pillow.
  private func perceptualHash() throws -> UInt64 {
    guard max(width, height) <= PerceptualHash.maxSide else {
      throw DecodeError.tooLong(
        sideOf: "an image with a perceptual hash", PerceptualHash.maxSide, width: orientedWidth, height: orientedHeight)
    }
    let picture = try stored().withProfile(nil).standardized()
    var hash = PerceptualHash(width: picture.width, height: picture.height)
    let bands = picture.bands
    try picture.forEachRows { hash.add($0, bands: bands) }
    return hash.value
  }

  private func stored() throws -> Picture {
    guard let drawing = input.drawing else { return try frame(0, of: try reopened(shrink: 1)) }
    let whole = Transform.Crop(x: 0, y: 0, width: width, height: height)
    return try input.draw(drawing, whole, size: (width, height))
  }
}
