internal import CAVIF
internal import ImageCodec

/// Decodes an AVIF by libavif, as browsers do: alpha and range as the file says them, and layers up to the last.
///
/// libheif 1.15, by which libvips reads them, expands neither limited range of grey and alpha nor colours that only
/// `nclx` tells.
final class AVIFReader {
  private let decoder: UnsafeMutablePointer<avifDecoder>
  private let header: ImageHeader
  private let frames: Int

  /// - Parameters:
  ///   - input: must outlive the reader.
  ///   - wanted: 1 for the image that stands for a sequence, more for all frames.
  ///   - maxPixels: width x height x frames, as they are coded.
  init(_ input: Input, frames wanted: Int, maxPixels: Int) throws {
    header = try input.header(.avif)
    let isSequence = wanted > 1
    var opened: UnsafeMutablePointer<avifDecoder>?
    var result = AVIF_RESULT_UNKNOWN_ERROR
    // A sequence may have no item that stands for it.
    let sources = isSequence ? [] : [AVIF_DECODER_SOURCE_PRIMARY_ITEM]
    for source in sources + [AVIF_DECODER_SOURCE_TRACKS] {
      if let opened { avifDecoderDestroy(opened) }
      opened = cavif_open(input.bytes.baseAddress, input.bytes.count, source)
      result = opened.map(avifDecoderParse) ?? AVIF_RESULT_OUT_OF_MEMORY
      if result == AVIF_RESULT_OK { break }
    }
    guard let opened else { throw LibraryError.memory }
    decoder = opened
    frames = isSequence ? max(1, Int(opened.pointee.imageCount)) : 1
    try check(result)
    let (width, height) = (Int(opened.pointee.image.pointee.width), Int(opened.pointee.image.pointee.height))
    guard width > 0, height > 0 else { throw DecodeError.corrupt("the AVIF has no pixels") }
    guard height <= maxPixels / width, frames <= maxPixels / (width * height) else {
      throw DecodeError.tooManyPixels("\(width) x \(height) x \(frames) is more than \(maxPixels) pixels")
    }
  }

  /// Also when `init` throws: all that is stored is there by then.
  deinit { avifDecoderDestroy(decoder) }

  private var image: avifImage { decoder.pointee.image.pointee }

  /// The frames one below the other, not turned.
  func read() throws -> Raster {
    let aperture = self.aperture
    let (coded, hasAlpha) = ((width: Int(image.width), height: Int(image.height)), decoder.pointee.alphaPresent != 0)
    let (width, height) = (aperture?.width ?? coded.width, aperture?.height ?? coded.height)
    guard width == header.width, height == header.height else {
      throw DecodeError.corrupt("the AVIF has two sizes")
    }
    let raster = try Raster(width: width, height: height * frames, channels: hasAlpha ? 4 : 3)
    let whole = aperture == nil ? nil : try Raster(width: coded.width, height: coded.height, channels: hasAlpha ? 4 : 3)
    var delays: [Int] = []
    for index in 0..<frames {
      try check(avifDecoderNextImage(decoder))
      guard (Int(image.width), Int(image.height)) == coded else { throw DecodeError.corrupt("the AVIF has two sizes") }
      let target = raster.base + index * height * width * raster.channels
      try convert(into: whole?.base ?? target, channels: raster.channels)
      if let aperture, let whole { copy(aperture, of: whole, to: target) }
      delays.append(Int(min(max(0, decoder.pointee.imageTiming.duration * 1000), 1e6).rounded()))
    }
    raster.profile = profile
    if frames > 1 { raster.animation = Raster.Animation(delays: delays, plays: 0) }
    return raster
  }

  private func convert(into target: UnsafeMutableRawPointer, channels: Int) throws {
    var pixels = avifRGBImage()
    avifRGBImageSetDefaults(&pixels, decoder.pointee.image)
    pixels.depth = 8
    pixels.format = channels == 4 ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB
    pixels.pixels = target.assumingMemoryBound(to: UInt8.self)
    pixels.rowBytes = image.width * UInt32(channels)
    try check(avifImageYUVToRGB(decoder.pointee.image, &pixels))
  }

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

  /// Those of television cameras and the unspecified one: browsers show an AVIF of these as sRGB, unlike a PNG.
  private static let transfersOfSRGB: Set = [1, 2, 6, 13, 14, 15]

  /// An ICC profile counts before `nclx` (ISO/IEC 14496-12 section 12.1.5). nil for sRGB and what is taken for it.
  private var profile: [UInt8]? {
    if image.icc.size > 0 { return [UInt8](UnsafeBufferPointer(start: image.icc.data, count: image.icc.size)) }
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
