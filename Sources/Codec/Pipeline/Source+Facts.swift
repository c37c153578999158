internal import CVips
internal import ImageCodec

/// The facts of an image, of the first frame of an animation.
extension Source {
  func facts(_ wanted: FactSet) throws -> ImageFacts {
    var facts = ImageFacts()
    if wanted.contains(.perceptualHash) { facts.perceptualHash = try perceptualHash() }
    facts.add(wanted) { exif() }
    if wanted.contains(.container) { facts.container = ContainerReader.read(input, format) }
    return facts
  }

  /// The fields of the EXIF data. Empty without such data.
  func exif() -> [EXIFField: EXIFValue] {
    format == .heic ? EXIFReader.read(picture.exif, Set(EXIFField.allCases)) : input.exif(format)
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

extension Input {
  /// The facts of a format whose EXIF data needs no reader of pixels; nil for other formats, and if pixels are needed.
  func factsWithoutPixels(_ wanted: FactSet, _ format: ImageFormat) -> ImageFacts? {
    guard wanted == .container || !wanted.contains(.perceptualHash) && [.avif, .gif, .svg, .tiff].contains(format)
    else { return nil }
    var facts = ImageFacts()
    facts.add(wanted) { exif(format) }
    if wanted.contains(.container) {
      let (inner, innerFormat) = (try? innermost(format)) ?? (self, format)
      facts.container = ContainerReader.read(inner, innerFormat)
    }
    return facts
  }

  /// The fields of the EXIF data that libavif returns, or that are at a known place of the file.
  fileprivate func exif(_ format: ImageFormat) -> [EXIFField: EXIFValue] {
    switch format {
    case .jpeg, .png, .webp, .tiff: EXIFReader.read(file: self, format)
    case .avif: EXIFReader.read(AVIFReader.exif(of: self), Set(EXIFField.allCases))
    case .heic, .gif, .bmp, .ico, .svg, .jxl, .jp2: [:]
    }
  }
}

extension ImageFacts {
  /// Adds the fields that were asked for.
  fileprivate mutating func add(_ wanted: FactSet, from read: () -> [EXIFField: EXIFValue]) {
    guard !wanted.isDisjoint(with: [.exif, .gps]) else { return }
    let fields = read()
    if wanted.contains(.exif) { exif = fields.filter { !$0.key.isPosition } }
    if wanted.contains(.gps) { gps = fields.filter(\.key.isPosition) }
  }
}
