internal import CVips
internal import ImageCodec

/// The image to decode: what its header tells, checked against the limits before a pixel is.
struct Source {
  let input: Input
  let format: ImageFormat
  /// All frames one below the other, where all are wanted.
  let picture: Picture
  let frames: Int
  /// As stored, of one frame.
  let width: Int
  let height: Int
  /// How it must be laid, as in EXIF.
  let orientation: Int
  private let strictness: VipsFailOn
  private let allFrames: Bool
  private let maxPixels: Int

  init(request: CodecRequest, input file: Input) throws {
    (input, format) = try file.innermost(request.format)
    maxPixels = request.maxPixels
    allFrames = request.output == .check || request.transform.frames == .all
    strictness = if case .preview = request.output { VIPS_FAIL_ON_NONE } else { VIPS_FAIL_ON_ERROR }
    orientation = request.orientation
    if format.isDecodedWhole {
      let header = try input.header(format)
      try Self.check(width: header.width ?? 0, height: header.height ?? 0, maxPixels: maxPixels)
      try input.decode(format)
    }
    picture = try input.open(format, strictness: strictness, allFrames: allFrames)
    frames = allFrames ? max(1, picture.height / max(1, picture.pageHeight)) : 1
    // Where a GIF's screen has one of the usual sizes, libvips cuts it to what the frames cover.
    let screen = format == .gif ? try? ImageHeader.read(input, format: .gif) : nil
    width = max(picture.width, screen?.width ?? 0)
    height = max(picture.height / frames, screen?.height ?? 0)
    try check(width: width, height: height * frames)
    // Of a cut animation libvips has fewer frames, the last of which may be half empty.
    if format == .gif, allFrames, GIFHeader.isCut(input) { throw DecodeError.corrupt("the GIF is cut") }
    guard picture.bands <= 5 else { throw DecodeError.unsupportedFormat("the image has \(picture.bands) channels") }
  }

  private var isTurned: Bool { orientation >= 5 }
  var orientedWidth: Int { isTurned ? height : width }
  var orientedHeight: Int { isTurned ? width : height }

  func geometry(_ transform: Transform) throws(DecodeError) -> Geometry {
    guard let geometry = try? transform.geometry(width: orientedWidth, height: orientedHeight) else {
      throw .cropOutside("the crop lies outside of the image, which is \(orientedWidth) x \(orientedHeight)")
    }
    try check(width: geometry.width, height: geometry.height * frames)
    try check(width: geometry.scaledWidth, height: geometry.scaledHeight * frames)
    return geometry
  }

  func hasAlpha(after transform: Transform) -> Bool {
    picture.hasAlpha || isLargerThanFrames || transform.cornerRadius > 0
  }

  /// Whether the file has indices of few colours, and not colours: all GIFs, and PNGs of colour type 3.
  var hasPalette: Bool { format == .gif || format == .png && input.bytes.count > 25 && input.bytes[25] == 3 }

  /// Whether the components of a JPEG are those of grey or RGB, or become them one by one.
  var hasPlainPlanes: Bool { [1, 3].contains(picture.bands) }

  private var isLargerThanFrames: Bool { width > picture.width || height > picture.height / frames }

  /// A frame of what `reopened` gives, as large as the image.
  func frame(_ index: Int, of roll: Picture) throws(LibraryError) -> Picture {
    let height = roll.height / frames
    let frame = try roll.extracted(x: 0, y: index * height, width: roll.width, height: height)
    return isLargerThanFrames ? try frame.extended(toWidth: width, height: self.height) : frame
  }

  /// The image opened again, to be read from its top. The result may be up to `shrink` times smaller on each side.
  func reopened(shrink: Int) throws(LibraryError) -> Picture {
    if let reader = try jpegReader() { return try reader.picture(like: picture, shrink: shrink) }
    return try input.open(format, strictness: strictness, allFrames: allFrames, shrink: shrink)
  }

  /// Decodes every pixel, of all frames.
  func readAll() throws {
    if let reader = try jpegReader(isStrict: true) { return try reader.readAll() }
    try picture.forEachRows { _ in }
  }

  /// A reader of the whole image; nil where it is no JPEG, or the beginning of one, of which libvips makes more.
  func jpegReader(isStrict: Bool = false) throws(LibraryError) -> JPEGReader? {
    guard format == .jpeg, strictness == VIPS_FAIL_ON_ERROR else { return nil }
    return try input.jpegReader(isStrict: isStrict)
  }

  private func check(width: Int, height: Int) throws(DecodeError) {
    try Self.check(width: width, height: height, maxPixels: maxPixels)
  }

  private static func check(width: Int, height: Int, maxPixels: Int) throws(DecodeError) {
    guard height <= maxPixels / max(1, width) else {
      throw .tooManyPixels("\(width) x \(height) is more than \(maxPixels) pixels")
    }
  }
}
