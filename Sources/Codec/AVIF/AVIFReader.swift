internal import CAVIF
internal import CodecCore
internal import ImageCodec

/// Decodes an AVIF with libavif, as browsers do: alpha and range as the file says, and all layers.
///
/// libheif 1.15, which libvips uses for AVIF, neither expands the limited range of grey and alpha nor applies colours
/// that only `nclx` declares.
final class AVIFReader: FrameReader {
  private let decoder: UnsafeMutablePointer<avifDecoder>
  private let header: ImageHeader
  private var framesLeft: Int
  /// The pixels of a frame, and those of the coded picture if only a part of it is shown.
  private var rasters: (canvas: Raster, coded: Raster?)?
  let plays = 0
  /// Always false, because libavif rejects a frame that lacks pixels.
  let isDamaged = false

  /// - Parameters:
  ///   - input: must outlive the reader.
  ///   - wanted: 1 for the primary image of a sequence, more for all frames.
  ///   - maxPixels: the limit of width x height x frames, as coded.
  init(_ input: Input, frames wanted: Int, maxPixels: Int) throws {
    header = try input.header(.avif)
    let isSequence = wanted > 1
    var opened: UnsafeMutablePointer<avifDecoder>?
    var result = AVIF_RESULT_UNKNOWN_ERROR
    // A sequence may have no primary item.
    let sources = isSequence ? [] : [AVIF_DECODER_SOURCE_PRIMARY_ITEM]
    for source in sources + [AVIF_DECODER_SOURCE_TRACKS] {
      if let opened { avifDecoderDestroy(opened) }
      opened = cavif_open(input.bytes.baseAddress, input.bytes.count, source)
      result = opened.map(avifDecoderParse) ?? AVIF_RESULT_OUT_OF_MEMORY
      if result == AVIF_RESULT_OK { break }
    }
    guard let opened else { throw LibraryError.memory }
    decoder = opened
    let frames = isSequence ? max(1, Int(opened.pointee.imageCount)) : 1
    framesLeft = frames
    try check(result)
    let (width, height) = (Int(opened.pointee.image.pointee.width), Int(opened.pointee.image.pointee.height))
    guard width > 0, height > 0 else { throw DecodeError.corrupt("the AVIF has no pixels") }
    guard height <= maxPixels / width, frames <= maxPixels / (width * height) else {
      throw DecodeError.overLimit(maxPixels, width: width, height: height, frames: frames)
    }
  }

  /// The EXIF data of the primary image; empty if there is none. No pixel is decoded. The input notes the dynamic range.
  static func exif(of input: Input) -> [UInt8] {
    guard let decoder = cavif_open(input.bytes.baseAddress, input.bytes.count, AVIF_DECODER_SOURCE_PRIMARY_ITEM) else {
      return []
    }
    defer { avifDecoderDestroy(decoder) }
    decoder.pointee.ignoreExif = AVIF_FALSE
    guard avifDecoderParse(decoder) == AVIF_RESULT_OK, let image = decoder.pointee.image else { return [] }
    input.note(hdr(of: image.pointee))
    return [UInt8](UnsafeBufferPointer(start: image.pointee.exif.data, count: image.pointee.exif.size))
  }

  /// Also runs if `init` throws: all stored properties are initialised by then.
  deinit { avifDecoderDestroy(decoder) }

  private var image: avifImage { decoder.pointee.image.pointee }

  /// Returns the next frame, not oriented.
  func next() throws -> (canvas: Raster, delay: Int)? {
    guard framesLeft > 0 else { return nil }
    framesLeft -= 1
    try check(avifDecoderNextImage(decoder))
    let aperture = self.aperture
    let (canvas, coded) = try rasters ?? newRasters(aperture)
    rasters = (canvas, coded)
    try convert(into: coded ?? canvas)
    if let aperture, let coded { copy(aperture, of: coded, to: canvas.base) }
    return (canvas, Int(min(max(0, decoder.pointee.imageTiming.duration * 1000), 1e6).rounded()))
  }

  private func newRasters(_ aperture: CleanAperture?) throws -> (canvas: Raster, coded: Raster?) {
    let channels = decoder.pointee.alphaPresent != 0 ? 4 : 3
    let coded = try Raster(width: Int(image.width), height: Int(image.height), channels: channels)
    let part = try aperture.map { try Raster(width: $0.width, height: $0.height, channels: channels) }
    let canvas = part ?? coded
    guard canvas.width == header.width, canvas.height == header.height else { throw Self.twoSizes }
    canvas.profile = profile
    return (canvas, part == nil ? nil : coded)
  }

  private static let twoSizes = DecodeError.corrupt("the AVIF has two different sizes")

  private func convert(into raster: Raster) throws {
    guard (Int(image.width), Int(image.height)) == (raster.width, raster.height) else { throw Self.twoSizes }
    guard let map = toneMap else {
      return try convert(into: raster.base, bytes: 1, channels: raster.channels)
    }
    let count = raster.width * raster.height
    let deep = try PixelMemory(2 * count * raster.channels)
    try convert(into: deep.bytes.baseAddress!, bytes: 2, channels: raster.channels)
    deep.samples.withMemoryRebound(to: UInt16.self, capacity: count * raster.channels) {
      map.convert($0, count: count, bands: raster.channels, into: raster.base.assumingMemoryBound(to: UInt8.self))
    }
  }

  /// - Parameter bytes: those of a sample.
  private func convert(into memory: UnsafeMutableRawPointer, bytes: Int, channels: Int) throws {
    var pixels = avifRGBImage()
    avifRGBImageSetDefaults(&pixels, decoder.pointee.image)
    pixels.depth = UInt32(8 * bytes)
    pixels.format = channels == 4 ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB
    pixels.pixels = memory.assumingMemoryBound(to: UInt8.self)
    pixels.rowBytes = image.width * UInt32(channels * bytes)
    try check(avifImageYUVToRGB(decoder.pointee.image, &pixels))
  }

  /// The colours of a picture with high dynamic range.
  var hdr: HDRColors? { Self.hdr(of: image) }

  private static func hdr(of image: avifImage) -> HDRColors? {
    if image.icc.size > 0 { return nil }
    return HDRColors(primaries: Int(image.colorPrimaries), transfer: Int(image.transferCharacteristics))
  }

  /// For all frames.
  private lazy var toneMap = hdr.flatMap { ToneMap($0) }

  private var aperture: CleanAperture? {
    guard image.transformFlags & AVIF_TRANSFORM_CLAP.rawValue != 0 else { return nil }
    let clap = image.clap
    let numbers = [
      clap.widthN, clap.widthD, clap.heightN, clap.heightD, clap.horizOffN, clap.horizOffD, clap.vertOffN,
      clap.vertOffD,
    ]
    return CleanAperture(numbers.map { Int($0) }, width: Int(image.width), height: Int(image.height))
  }

  private func copy(_ part: CleanAperture, of whole: Raster, to target: UnsafeMutableRawPointer) {
    let length = part.width * whole.channels
    for row in 0..<part.height {
      let start = ((part.y + row) * whole.width + part.x) * whole.channels
      (target + row * length).copyMemory(from: whole.base + start, byteCount: length)
    }
  }

  /// The transfer functions of television cameras and the unspecified one. Browsers treat them as sRGB in an AVIF,
  /// unlike in a PNG.
  private static let transfersOfSRGB: Set = [1, 2, 6, 13, 14, 15]

  /// An ICC profile takes precedence over `nclx` (ISO/IEC 14496-12 section 12.1.5). Nil for sRGB and its equivalents.
  private var profile: [UInt8]? {
    if image.icc.size > 0 { return [UInt8](UnsafeBufferPointer(start: image.icc.data, count: image.icc.size)) }
    // The pixels are sRGB already.
    if hdr != nil { return nil }
    let (primaries, transfer) = (Int(image.colorPrimaries), Int(image.transferCharacteristics))
    guard let chromaticities = Chromaticities(codePoint: primaries == 2 ? 1 : primaries),
      let function = Self.transfersOfSRGB.contains(transfer) ? .sRGB : TransferFunction(codePoint: transfer),
      chromaticities != .bt709 || function != .sRGB
    else { return nil }
    return ICCProfile.display(chromaticities, function)
  }

  private func check(_ result: avifResult) throws {
    switch result {
    case AVIF_RESULT_OK: return
    case AVIF_RESULT_OUT_OF_MEMORY: throw LibraryError.memory
    case AVIF_RESULT_NOT_IMPLEMENTED, AVIF_RESULT_UNSUPPORTED_DEPTH:
      throw DecodeError.unsupportedFormat("the decoder does not read this kind of AVIF")
    default:
      let details = withUnsafeBytes(of: decoder.pointee.diag.error) {
        String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
      }
      let name = String(cString: avifResultToString(result))
      throw DecodeError.corrupt(CodecReply.readable(details.isEmpty ? name : "\(name): \(details)"))
    }
  }
}
