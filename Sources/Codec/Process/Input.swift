internal import CVips
internal import CodecCore
internal import ImageCodec
internal import Platform

/// The bytes of an image. Must outlive the pictures that are opened from it.
final class Input {
  let bytes: UnsafeRawBufferPointer
  /// The owner of the bytes.
  private let file: AnyObject
  /// The decoded images, by their numbers of frames. Pictures read them, so none is replaced.
  private var rasters: [Int: Raster] = [:]
  private(set) var drawing: Drawing?
  /// The pixels of the image, if they are kept for several readers.
  var decoded: Picture?
  var hasRaster: Bool { !rasters.isEmpty }
  /// The reader that decoded the first frames of the raster and continues after them.
  private var frameReader: (any FrameReader)?
  private var jpegReaders: [JPEGReader] = []
  /// The owners of pixels that pictures read. They must outlive the pictures.
  private var readByPictures: [AnyObject] = []
  /// The notes from the headers read so far.
  private var headerNotes: ImageNotes = []

  init(_ file: InputFile) { (bytes, self.file) = (file.bytes, file) }

  init(copying file: EncodedFile) { (bytes, self.file) = (file.bytes, file) }

  /// The bytes of another input, from an offset on.
  init(partOf whole: Input, from start: Int) {
    (bytes, file) = (UnsafeRawBufferPointer(rebasing: whole.bytes[start...]), whole)
  }

  /// Opens the image. The pixels are decoded from the top when they are read.
  ///
  /// - Parameter shrink: the maximum factor by which each side may be reduced while it is decoded; the loader may do
  ///   less.
  func open(
    _ format: ImageFormat, strictness: VipsFailOn, allFrames: Bool = false, shrink: Int = 1
  ) throws -> Picture {
    if let frames = allFrames ? rasters.keys.max() : rasters.keys.min(), let raster = rasters[frames] {
      try checkSides(raster.width, raster.height)
      return try Picture.viewing(raster)
    }
    // A drawing has no pixels until its size is chosen.
    if let drawing {
      try checkSides(drawing.width, drawing.height)
      return try Picture.make { cvips_transparent($0, Int32(drawing.width), Int32(drawing.height)) }
    }
    if format == .png { return try png() }
    if format == .tiff, TIFFHeader.isDNG(self) { throw DecodeError.isDNG }
    // libvips shows the top of a truncated file.
    if format == .webp, strictness == VIPS_FAIL_ON_ERROR {
      let reader = try WebPReader(bytes)
      if !reader.isAnimated { return try reader.picture(shrink: shrink) }
    }
    guard let loader = format.loader, let source = vips_source_new_from_memory(bytes.baseAddress, bytes.count) else {
      throw LibraryError()
    }
    defer { cvips_unref(source) }
    let picture = try Picture.make { result in
      switch format {
      case .jpeg: cvips_load_jpeg(source, result, strictness, Int32(shrink))
      case .webp: cvips_load_webp(source, result, strictness, allFrames ? -1 : 1, 1 / Double(shrink))
      default: cvips_load(loader, source, result, strictness)
      }
    }
    switch format {
    case .tiff: return try picture.common(alpha: TIFFHeader.alpha(self))
    case .heic:
      let colors = HEIFColors(self)
      if colors.hasGainMap { headerNotes.insert(.gainMap) }
      let hdr = colors.codePoints.flatMap { HDRColors(primaries: $0.primaries, transfer: $0.transfer) }
      return try hdr.map { try toneMapped(picture, $0) } ?? picture
    case .jxl:
      let picture = try picture.withoutFloats()
      let hdr = picture.profile.flatMap { EmbeddedProfile.hdr($0) }
      return try hdr.map { try toneMapped(picture, $0) } ?? picture
    case .jpeg:
      if JPEGScreening.hasGainMap(bytes) { headerNotes.insert(.gainMap) }
      return picture
    default: return picture
    }
  }

  /// Opens a PNG, or a frame of an animated one.
  func png(frame: APNGScan.Frame? = nil) throws -> Picture {
    let reader = try PNGReader(bytes, frame: frame)
    if reader.isDamaged { headerNotes.insert(.damaged) }
    try checkSides(reader.size.width, reader.size.height)
    let picture = try reader.picture(profile: reader.profile)
    return try PNGColors(of: bytes).hdr.map { try toneMapped(picture, $0) } ?? picture
  }

  /// libvips would take a longer side for 1.
  private func checkSides(_ width: Int, _ height: Int) throws(DecodeError) {
    let limit = Int(cvips_max_side())
    guard max(width, height) <= limit else {
      throw .tooLong(sideOf: "the image", limit, width: width, height: height)
    }
  }

  private func toneMapped(_ picture: Picture, _ colors: HDRColors) throws(LibraryError) -> Picture {
    guard let mapped = try picture.toneMapped(colors) else { return picture }
    note(colors)
    return mapped
  }

  /// Notes the dynamic range that a header tells.
  func note(_ colors: HDRColors?) {
    if let colors { headerNotes.insert(colors.transfer.note) }
  }

  /// Decodes an image that libvips does not read, or reads differently from browsers. `open` then returns its pixels.
  ///
  /// - Parameters:
  ///   - size: the size in the header.
  ///   - isOneByOne: whether only the first frame is decoded here, and the others by `readOtherFrames`.
  func decode(
    _ format: ImageFormat, size: (width: Int, height: Int), frames: Int, isOneByOne: Bool, maxPixels: Int
  ) throws {
    let count = isOneByOne ? 1 : frames
    // Another rendition of the same input has decoded as many.
    if rasters[count] != nil, !isOneByOne { return }
    func decode(by reader: some FrameReader) throws {
      var reader = reader
      rasters[count] = try reader.raster(frames: count, continues: isOneByOne)
      frameReader = reader
    }
    switch format {
    case .avif:
      let reader = try AVIFReader(self, frames: frames, maxPixels: maxPixels)
      note(reader.hdr)
      try decode(by: reader)
    case .gif: try decode(by: try GIFReader(self))
    case .png:
      if let animation { try decode(by: try APNGReader(self, animation)) }
    case .bmp: rasters[count] = try BitmapReader(self).read()
    case .svg: drawing = Drawing(file: bytes, width: size.width, height: size.height)
    case .ico: rasters[count] = try BitmapReader(self, entry: try icon()).read()
    default: break
    }
  }

  /// Decodes the frames that are left, and throws if any lacks a pixel.
  ///
  /// - Returns: false if the frames of the image are not decoded by a reader of this program.
  func readOtherFrames() throws -> Bool {
    guard var reader = frameReader else { return false }
    while try reader.next() != nil {}
    if reader.isDamaged { throw DecodeError.corrupt("the data of a frame is incomplete") }
    return true
  }

  func jpegReader(isStrict: Bool) throws(LibraryError) -> JPEGReader {
    let reader = try JPEGReader(bytes, isStrict: isStrict)
    jpegReaders.append(reader)
    return reader
  }

  /// The notes from the headers and the pixels read so far.
  var notes: ImageNotes {
    let isDamaged = frameReader?.isDamaged == true || jpegReaders.contains(where: \.isDamaged)
    return isDamaged ? headerNotes.union(.damaged) : headerNotes
  }

  /// Draws a part of an SVG. The input must outlive the picture.
  func draw(_ drawing: Drawing, _ crop: Transform.Crop, size: (width: Int, height: Int)) throws -> Picture {
    let raster = try drawing.raster(crop, size: size)
    readByPictures.append(raster)
    return try Picture.viewing(raster)
  }
}

extension Input: ByteSource {
  var count: Int { bytes.count }

  func bytes(at offset: Int, count: Int) -> ArraySlice<UInt8> { bytes.bytes(at: offset, count: count) }
}

/// Files that contain a file of another format: an icon with a PNG, or a bitmap with a JPEG or a PNG as its pixels.
extension Input {
  /// The contained image, screened as a file of its format; the file itself if it contains none.
  func innermost(_ format: ImageFormat) throws(DecodeError) -> (Input, ImageFormat) {
    switch format {
    case .ico:
      let entry = try icon()
      return entry.isPNG ? try part(from: entry.start, as: .png) : (self, format)
    case .bmp:
      let bitmap = try bitmap()
      switch bitmap.compression {
      case .jpeg: return try part(from: Int(self.bytes.littleEndian(at: 10)), as: .jpeg)
      case .png: return try part(from: Int(self.bytes.littleEndian(at: 10)), as: .png)
      default: return (self, format)
      }
    default: return (self, format)
    }
  }

  func icon() throws(DecodeError) -> ICOHeader.Entry {
    do throws(ImageHeaderError) { return try ICOHeader.largest(in: self) } catch { throw .corrupt(error.description) }
  }

  func header(_ format: ImageFormat) throws(DecodeError) -> ImageHeader {
    do throws(ImageHeaderError) { return try ImageHeader.read(self, format: format) } catch {
      throw .corrupt(error.description)
    }
  }

  private func bitmap() throws(DecodeError) -> BitmapHeader {
    do throws(ImageHeaderError) { return try BitmapHeader(self, at: BMPHeader.start) } catch {
      throw .corrupt(error.description)
    }
  }

  private func part(from start: Int, as format: ImageFormat) throws(DecodeError) -> (Input, ImageFormat) {
    guard start > 0, start < count else { throw .corrupt("the image is truncated") }
    return (try Input(partOf: self, from: start).screened(format), format)
  }
}

extension DecodeError {
  /// libtiff would return a preview.
  fileprivate static var isDNG: DecodeError {
    var figures = ErrorFigures()
    figures.detected = .dng
    return .unsupportedFormat("the file is a DNG (raw photo), and the decoder does not develop raw photos", figures)
  }
}

extension HDRTransfer {
  fileprivate var note: ImageNotes {
    switch self {
    case .pq: .pq
    case .hlg: .hlg
    }
  }
}
