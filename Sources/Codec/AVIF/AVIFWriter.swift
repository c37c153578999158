internal import CAVIF
internal import CodecCore
internal import ImageCodec

/// Writes an AVIF with libavif and libaom. libheif 1.15 wrongly marks alpha as limited range.
enum AVIFWriter {
  /// The speed that libheif uses for libvips' effort 3.
  private static let speed: Int32 = 6

  /// - Parameters:
  ///   - pixels: rows of 1 to 4 bands: grey or R G B, plus alpha if their number is even.
  ///   - quality: 1 to 100. From 90 on, chroma is not subsampled.
  ///   - exif: without an orientation; empty for none.
  static func file(
    _ pixels: UnsafeMutablePointer<UInt8>, width: Int, height: Int, bands: Int, quality: Int, exif: [UInt8]
  ) throws -> EncodedFile {
    let layout =
      bands < 3 ? AVIF_PIXEL_FORMAT_YUV400 : quality >= 90 ? AVIF_PIXEL_FORMAT_YUV444 : AVIF_PIXEL_FORMAT_YUV420
    guard let image = avifImageCreate(UInt32(width), UInt32(height), 8, layout),
      let encoder = cavif_encoder(Int32(((100 - quality) * 63 + 50) / 100), speed)
    else { throw LibraryError.memory }
    defer {
      avifEncoderDestroy(encoder)
      avifImageDestroy(image)
    }
    image.pointee.yuvRange = AVIF_RANGE_FULL
    image.pointee.colorPrimaries = avifColorPrimaries(AVIF_COLOR_PRIMARIES_BT709)
    image.pointee.transferCharacteristics = avifTransferCharacteristics(AVIF_TRANSFER_CHARACTERISTICS_SRGB)
    image.pointee.matrixCoefficients = avifMatrixCoefficients(AVIF_MATRIX_COEFFICIENTS_BT601)
    try check(fill(image, from: pixels, bands: bands))
    if !exif.isEmpty { try check(cavif_set_exif(image, exif, exif.count)) }
    var output = avifRWData()
    let result = avifEncoderWrite(encoder, image, &output)
    guard result == AVIF_RESULT_OK, let bytes = output.data else {
      avifRWDataFree(&output)
      // An encoder that runs out of memory reports only that it failed.
      throw LibraryError.memory
    }
    // libavif allocates with malloc.
    return EncodedFile(bytes: bytes, count: output.size)
  }

  private static func fill(
    _ image: UnsafeMutablePointer<avifImage>, from pixels: UnsafeMutablePointer<UInt8>, bands: Int
  ) -> avifResult {
    let width = Int(image.pointee.width)
    if bands >= 3 {
      var colors = avifRGBImage()
      avifRGBImageSetDefaults(&colors, image)
      colors.format = bands == 4 ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB
      colors.pixels = pixels
      colors.rowBytes = UInt32(width * bands)
      return avifImageRGBToYUV(image, &colors)
    }
    let planes = (bands == 2 ? AVIF_PLANES_ALL : AVIF_PLANES_YUV).rawValue
    let result = avifImageAllocatePlanes(image, planes)
    guard result == AVIF_RESULT_OK, let grey = image.pointee.yuvPlanes.0 else { return AVIF_RESULT_OUT_OF_MEMORY }
    for y in 0..<Int(image.pointee.height) {
      let row = pixels + y * width * bands
      let greyRow = grey + y * Int(image.pointee.yuvRowBytes.0)
      for x in 0..<width { greyRow[x] = row[x * bands] }
      guard bands == 2, let alpha = image.pointee.alphaPlane else { continue }
      let alphaRow = alpha + y * Int(image.pointee.alphaRowBytes)
      for x in 0..<width { alphaRow[x] = row[2 * x + 1] }
    }
    return AVIF_RESULT_OK
  }

  private static func check(_ result: avifResult) throws {
    if result == AVIF_RESULT_OUT_OF_MEMORY { throw LibraryError.memory }
    if result != AVIF_RESULT_OK { throw LibraryError(String(cString: avifResultToString(result))) }
  }
}
