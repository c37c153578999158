import CAVIF

/// Builds AVIF files of one or more colours with libavif, of kinds that the decoder itself does not write.
struct AVIFBuilder {
  var layout = AVIF_PIXEL_FORMAT_YUV444
  var depth = 8
  var isFullRange = true
  /// Code points of the primaries and the transfer (ITU-T H.273).
  var primaries = 1
  var transfer = 13
  var isPremultiplied = false
  var turns: UInt8?
  var exif: [UInt8] = []
  /// The eight fields of the clean aperture box.
  var clap: [UInt32]?
  var width = 64
  var height = 64
  /// The size of a grid, whose pictures are given row by row instead of frames; all must have the same size.
  var columns: Int?
  /// The frames, each with its milliseconds and its pixels in R G B A.
  var frames: [(milliseconds: Int, pixel: (_ x: Int, _ y: Int) -> [Int])]

  struct Failure: Error {
    let result: avifResult
  }

  func file() throws -> [UInt8] {
    let encoder = try unwrap(cavif_encoder(0, 9))
    defer { avifEncoderDestroy(encoder) }
    encoder.pointee.timescale = 1000
    if let columns {
      let cells = try frames.map { UnsafePointer?(try image($0.pixel)) }
      defer { for cell in cells { avifImageDestroy(UnsafeMutablePointer(mutating: cell)) } }
      let flags = AVIF_ADD_IMAGE_FLAG_SINGLE
      try check(
        avifEncoderAddImageGrid(encoder, UInt32(columns), UInt32(frames.count / columns), cells, flags.rawValue))
      return try finish(encoder)
    }
    for frame in frames {
      let image = try image(frame.pixel)
      defer { avifImageDestroy(image) }
      let flags = frames.count == 1 ? AVIF_ADD_IMAGE_FLAG_SINGLE : AVIF_ADD_IMAGE_FLAG_NONE
      try check(avifEncoderAddImage(encoder, image, UInt64(frame.milliseconds), flags.rawValue))
    }
    return try finish(encoder)
  }

  private func finish(_ encoder: UnsafeMutablePointer<avifEncoder>) throws -> [UInt8] {
    var output = avifRWData()
    defer { avifRWDataFree(&output) }
    try check(avifEncoderFinish(encoder, &output))
    return [UInt8](UnsafeBufferPointer(start: output.data, count: output.size))
  }

  private func image(_ pixel: (Int, Int) -> [Int]) throws -> UnsafeMutablePointer<avifImage> {
    let image = try unwrap(avifImageCreate(UInt32(width), UInt32(height), UInt32(depth), layout))
    if !exif.isEmpty { avifImageSetMetadataExif(image, exif, exif.count) }
    image.pointee.yuvRange = isFullRange ? AVIF_RANGE_FULL : AVIF_RANGE_LIMITED
    image.pointee.colorPrimaries = avifColorPrimaries(primaries)
    image.pointee.transferCharacteristics = avifTransferCharacteristics(transfer)
    let matrix = primaries == 9 ? AVIF_MATRIX_COEFFICIENTS_BT2020_NCL : AVIF_MATRIX_COEFFICIENTS_BT601
    image.pointee.matrixCoefficients = avifMatrixCoefficients(matrix)
    image.pointee.alphaPremultiplied = isPremultiplied ? 1 : 0
    if let turns {
      image.pointee.transformFlags |= AVIF_TRANSFORM_IROT.rawValue
      image.pointee.irot.angle = turns
    }
    if let clap {
      image.pointee.transformFlags |= AVIF_TRANSFORM_CLAP.rawValue
      image.pointee.clap = avifCleanApertureBox(
        widthN: clap[0], widthD: clap[1], heightN: clap[2], heightD: clap[3], horizOffN: clap[4], horizOffD: clap[5],
        vertOffN: clap[6], vertOffD: clap[7])
    }
    var samples: [UInt8] = []
    for y in 0..<height { for x in 0..<width { samples += pixel(x, y).map { UInt8($0) } } }
    let isOpaque = stride(from: 3, to: samples.count, by: 4).allSatisfy { samples[$0] == 255 }
    let result = samples.withUnsafeMutableBufferPointer { samples in
      var colors = avifRGBImage()
      avifRGBImageSetDefaults(&colors, image)
      colors.depth = 8
      colors.format = AVIF_RGB_FORMAT_RGBA
      colors.ignoreAlpha = isOpaque ? 1 : 0
      colors.pixels = samples.baseAddress
      colors.rowBytes = UInt32(4 * width)
      return avifImageRGBToYUV(image, &colors)
    }
    try check(result)
    return image
  }

  private func check(_ result: avifResult) throws {
    if result != AVIF_RESULT_OK { throw Failure(result: result) }
  }
}

private func unwrap<Value>(_ value: Value?) throws -> Value {
  guard let value else { throw AVIFBuilder.Failure(result: AVIF_RESULT_OUT_OF_MEMORY) }
  return value
}
