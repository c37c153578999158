internal import CVips
internal import ImageCodec
internal import Platform

/// The bytes of an image file, mapped. Must outlive the pictures that are opened from it.
final class Input {
  let bytes: UnsafeRawBufferPointer
  private let file: EncodedFile?
  /// The input that this one is a part of.
  private let whole: Input?
  private var raster: Raster?
  private(set) var drawing: Drawing?
  private var drawn: [Raster] = []
  /// The reader that has decoded the frames of the raster and continues after them.
  private var frameReader: (any FrameReader)?
  private var ends: [TrailingDataGuard] = []
  private var jpegReaders: [JPEGReader] = []

  /// nil when the file cannot be mapped. The descriptor is not needed afterwards.
  init?(mapping descriptor: Int32) {
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_size > 0,
      let address = mmap(nil, Int(status.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0), address != MAP_FAILED
    else { return nil }
    bytes = UnsafeRawBufferPointer(start: address, count: Int(status.st_size))
    (file, whole) = (nil, nil)
  }

  init(copying file: EncodedFile) {
    bytes = file.bytes
    (self.file, whole) = (file, nil)
  }

  /// The bytes of another input from an offset within it.
  init(partOf whole: Input, from start: Int) {
    bytes = UnsafeRawBufferPointer(rebasing: whole.bytes[start...])
    (file, self.whole) = (nil, whole)
  }

  deinit {
    if file == nil, whole == nil { munmap(UnsafeMutableRawPointer(mutating: bytes.baseAddress), bytes.count) }
  }

  /// The pixels are decoded from the top when they are read.
  ///
  /// - Parameter shrink: the most by which each side may be reduced while it is decoded; the loader may do less.
  func open(
    _ format: ImageFormat, strictness: VipsFailOn, allFrames: Bool = false, shrink: Int = 1
  ) throws(LibraryError) -> Picture {
    if let raster { return try Picture.viewing(raster) }
    // It has no pixels before there is a size.
    if let drawing { return try Picture.make { cvips_transparent($0, Int32(drawing.width), Int32(drawing.height)) } }
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
    if format == .tiff { return try picture.common(alpha: TIFFHeader.alpha(self)) }
    guard format == .png else { return picture }
    let colored = try picture.declared(PNGColors(of: bytes))
    if PNGScreening(bytes).isInterlaced { return colored }
    ends.append(TrailingDataGuard(of: bytes, readFrom: source))
    return try ends[ends.count - 1].watch(colored)
  }

  /// Decodes an image that libvips does not read, or not as browsers do. `open` then gives its pixels.
  ///
  /// - Parameters:
  ///   - size: that its header tells.
  ///   - isOneByOne: whether only the first frame is decoded here, and the others by `readOtherFrames`.
  func decode(
    _ format: ImageFormat, size: (width: Int, height: Int), frames: Int, isOneByOne: Bool, maxPixels: Int
  ) throws {
    func decode(by reader: some FrameReader) throws {
      var reader = reader
      raster = try reader.raster(frames: isOneByOne ? 1 : frames, continues: isOneByOne)
      frameReader = reader
    }
    switch format {
    case .avif: try decode(by: try AVIFReader(self, frames: frames, maxPixels: maxPixels))
    case .gif: try decode(by: try GIFReader(self))
    case .png:
      if let animation { try decode(by: try APNGReader(self, animation)) }
    case .bmp: raster = try BitmapReader(self).read()
    case .svg: drawing = Drawing(file: bytes, width: size.width, height: size.height)
    case .ico: raster = try BitmapReader(self, entry: try icon()).read()
    default: break
    }
  }

  /// Decodes the frames that follow those that have been decoded, and throws where any lacks a pixel.
  ///
  /// - Returns: false if the frames of the image are not decoded here.
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

  /// Whether anything that was read of it lacked something that the library has made up for.
  var isDamaged: Bool { frameReader?.isDamaged == true || jpegReaders.contains(where: \.isDamaged) }

  /// Draws a part of an SVG. Must outlive the picture.
  func draw(_ drawing: Drawing, _ crop: Transform.Crop, size: (width: Int, height: Int)) throws -> Picture {
    let raster = try drawing.raster(crop, size: size)
    drawn.append(raster)
    return try Picture.viewing(raster)
  }

  /// Why a picture could not be read to its end, where that is not libvips' word.
  var refusal: DecodeError? { ends.contains(where: \.goesOn) ? PNGScreening.refusal : nil }
}

extension Input: ByteSource {
  var count: Int { bytes.count }

  func bytes(at offset: Int, count: Int) -> ArraySlice<UInt8> {
    guard offset >= 0, offset < bytes.count, count > 0 else { return [] }
    return ArraySlice(bytes[offset..<(offset + min(count, bytes.count - offset))])
  }
}
