internal import CVips
internal import CodecCore
internal import ImageCodec

/// The image to decode: its header, which is checked against the limits before any pixel is decoded.
struct Source {
  let input: Input
  let format: ImageFormat
  /// All frames stacked vertically, if all are requested.
  let picture: Picture
  let frames: Int
  /// The stored width of one frame.
  let width: Int
  let height: Int
  /// The EXIF orientation to apply.
  let orientation: Int
  private let strictness: VipsFailOn
  private let allFrames: Bool
  private let limit: PixelLimit

  init(request: CodecRequest, input file: Input) throws {
    (input, format) = try file.innermost(request.format)
    limit = PixelLimit(request)
    let checks =
      switch request.output {
      case .check, .renditions(_, _, checks: true): true
      default: false
      }
    allFrames = checks || request.transform.frames == .all
    strictness = if case .preview = request.output { VIPS_FAIL_ON_NONE } else { VIPS_FAIL_ON_ERROR }
    orientation = request.orientation
    if format.isDecodedWhole || format == .png && input.needsCompositing(allFrames: allFrames) {
      let header = try input.header(format)
      let all = allFrames ? header.frames : 1
      let size = (width: header.width ?? 0, height: header.height ?? 0)
      try limit.check(width: size.width, height: size.height, frames: all)
      // A check decodes the frames one at a time.
      try input.decode(format, size: size, frames: all, isOneByOne: checks, maxPixels: request.maxPixels)
    }
    picture = try input.open(format, strictness: strictness, allFrames: allFrames)
    frames = allFrames ? max(1, picture.height / max(1, picture.pageHeight)) : 1
    (width, height) = (picture.width, picture.height / frames)
    try limit.check(width: width, height: height, frames: frames)
    guard picture.bands <= 5 else { throw DecodeError.unsupportedFormat("the image has \(picture.bands) channels") }
  }

  private var isTurned: Bool { orientation >= 5 }
  var orientedWidth: Int { isTurned ? height : width }
  var orientedHeight: Int { isTurned ? width : height }

  func geometry(_ transform: Transform) throws(DecodeError) -> Geometry {
    try limit.geometry(transform, width: orientedWidth, height: orientedHeight, frames: frames)
  }

  func layout(_ geometry: Geometry) -> StoredLayout {
    StoredLayout(geometry, of: format, size: (width, height), orientation: orientation)
  }

  func hasAlpha(after transform: Transform) -> Bool {
    picture.hasAlpha || transform.cornerRadius > 0
  }

  /// Whether the image is line art or pixel art: the file has a palette, and its pixels take at most 4 kB plus one bit
  /// each. Photographs with few colours take more.
  var isArtwork: Bool {
    let hasPalette = format == .gif || format == .png && PNGReader.hasPalette(input.bytes)
    guard hasPalette, let framesInFile = try? input.header(format).frames else { return false }
    return input.bytes.count <= 4096 + width * height / 8 * framesInFile
  }

  /// Whether the components of a JPEG are grey or RGB, or convert to these independently of each other.
  var hasPlainPlanes: Bool { [1, 3].contains(picture.bands) }

  /// A frame of the picture that `reopened` returns.
  func frame(_ index: Int, of roll: Picture) throws(LibraryError) -> Picture {
    let height = roll.height / frames
    return try roll.extracted(x: 0, y: index * height, width: roll.width, height: height)
  }

  /// The image opened again, to be read from its top. Each side may be reduced by up to `shrink`.
  func reopened(shrink: Int) throws -> Picture {
    if let reader = try jpegReader() { return try reader.picture(like: picture, shrink: shrink) }
    if let decoded = input.decoded { return decoded }
    return try input.open(format, strictness: strictness, allFrames: frames > 1, shrink: shrink)
  }

  /// Whether the file is decoded each time that its pixels are read, and never at a reduced size.
  var decodesAnew: Bool { frames == 1 && ![.jpeg, .webp].contains(format) && input.drawing == nil && !input.hasRaster }

  /// Decodes every pixel of all frames.
  func readAll() throws {
    if let drawing = input.drawing {
      _ = try drawing.raster()
      return
    }
    if let reader = try jpegReader(isStrict: true) { return try reader.readAll() }
    if try input.readOtherFrames() { return }
    try picture.forEachRows { _ in }
  }

  /// A reader of the whole image. Nil if it is not a JPEG or is a partial one, of which libvips decodes more.
  func jpegReader(isStrict: Bool = false) throws(LibraryError) -> JPEGReader? {
    guard format == .jpeg, strictness == VIPS_FAIL_ON_ERROR else { return nil }
    return try input.jpegReader(isStrict: isStrict)
  }
}
