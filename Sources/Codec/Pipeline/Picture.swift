internal import CVips
internal import CodecCore

/// A libvips image. Most are pipelines whose pixels are computed when they are read.
final class Picture {
  typealias Pointer = UnsafeMutablePointer<VipsImage>
  typealias Result = UnsafeMutablePointer<Pointer?>

  let pointer: Pointer

  private init(owning pointer: Pointer) { self.pointer = pointer }

  deinit { cvips_unref(pointer) }

  /// Wraps the image that an operation returns. The operation must return 0 and store a new image in its parameter.
  static func make(_ operation: (Result) -> Int32) throws(LibraryError) -> Picture {
    var result: Pointer?
    guard operation(&result) == 0, let result else { throw LibraryError() }
    return Picture(owning: result)
  }

  func map(_ operation: (Pointer, Result) -> Int32) throws(LibraryError) -> Picture {
    try Picture.make { operation(pointer, $0) }
  }

  var width: Int { Int(vips_image_get_width(pointer)) }
  var height: Int { Int(vips_image_get_height(pointer)) }
  var bands: Int { Int(vips_image_get_bands(pointer)) }
  var bandFormat: VipsBandFormat { vips_image_get_format(pointer) }
  /// The meaning of the bands, guessed if the file has no valid one.
  var interpretation: VipsInterpretation { vips_image_guess_interpretation(pointer) }
  var hasAlpha: Bool { vips_image_hasalpha(pointer) != 0 }
  var hasProfile: Bool { vips_image_get_typeof(pointer, "icc-profile-data") != 0 }
  /// The ICC profile; nil without any.
  var profile: [UInt8]? { blob("icc-profile-data") }
  /// The EXIF data that the loader found; empty without any.
  var exif: [UInt8] { blob("exif-data") ?? [] }

  private func blob(_ name: String) -> [UInt8]? {
    var data: UnsafeRawPointer?
    var length = 0
    guard vips_image_get_typeof(pointer, name) != 0, vips_image_get_blob(pointer, name, &data, &length) == 0, let data
    else { return nil }
    return [UInt8](UnsafeRawBufferPointer(start: data, count: length))
  }

  /// The number of colour bands according to the file; nil if the file has no usable information.
  var colors: Int? {
    switch vips_image_get_interpretation(pointer) {
    case VIPS_INTERPRETATION_B_W, VIPS_INTERPRETATION_GREY16: 1
    case VIPS_INTERPRETATION_sRGB, VIPS_INTERPRETATION_RGB, VIPS_INTERPRETATION_RGB16: 3
    case VIPS_INTERPRETATION_CMYK: 4
    default: nil
    }
  }
  /// The height of a frame in an animation, whose frames are stacked vertically.
  var pageHeight: Int { Int(vips_image_get_page_height(pointer)) }

  var isAnimation: Bool { pageHeight < height }

  /// A copy with all pixels computed, so that they can be read in any order and more than once.
  func inMemory() throws(LibraryError) -> Picture {
    guard let copy = vips_image_copy_memory(pointer) else { throw LibraryError() }
    return Picture(owning: copy)
  }

  static func grey(width: Int, height: Int) throws(LibraryError) -> Picture {
    try from([UInt8](repeating: 128, count: width * height), width: width, height: height)
  }

  /// A picture with one band, whose bytes are copied.
  static func from(_ bytes: [UInt8], width: Int, height: Int) throws(LibraryError) -> Picture {
    let image = bytes.withUnsafeBytes {
      vips_image_new_from_memory_copy($0.baseAddress, $0.count, Int32(width), Int32(height), 1, VIPS_FORMAT_UCHAR)
    }
    guard let image else { throw LibraryError() }
    return Picture(owning: image)
  }

  /// The pixels of a raster. The raster must outlive the picture.
  static func viewing(_ raster: Raster) throws(LibraryError) -> Picture {
    let profile = raster.profile
    let image = cvips_view(
      raster.bytes.baseAddress, raster.bytes.count, Int32(raster.width), Int32(raster.height), Int32(raster.channels),
      profile, profile?.count ?? 0)
    guard let image else { throw LibraryError() }
    if let animation = raster.animation {
      cvips_time(
        image, Int32(raster.height / animation.delays.count), animation.delays.map { Int32(clamping: $0) },
        Int32(animation.delays.count), Int32(animation.plays))
    }
    return Picture(owning: image)
  }

  /// A picture of other pixels, one byte for each band, with the same meaning as in this picture.
  func like(_ bytes: UnsafeRawBufferPointer, width: Int, height: Int) throws(LibraryError) -> Picture {
    guard let image = cvips_like(pointer, bytes.baseAddress, bytes.count, Int32(width), Int32(height)) else {
      throw LibraryError()
    }
    return Picture(owning: image)
  }

  /// The same pixels with another profile, or with none.
  func withProfile(_ profile: [UInt8]?) throws(LibraryError) -> Picture {
    // Metadata may only be set on an image that has no other owner.
    let copy = try map { cvips_copy($0, $1) }
    if let profile {
      vips_image_set_blob_copy(copy.pointer, "icc-profile-data", profile, profile.count)
    } else {
      vips_image_remove(copy.pointer, "icc-profile-data")
    }
    return copy
  }

  /// Pixels that `read` provides row by row on demand. It gets the owner, which is kept as long as the pixels.
  static func reading(
    width: Int, height: Int, bands: Int, format: VipsBandFormat, space: VipsInterpretation, profile: [UInt8]? = nil,
    owner: AnyObject, _ read: @escaping cvips_read_row
  ) throws(LibraryError) -> Picture {
    let context = Unmanaged.passRetained(owner).toOpaque()
    return try make {
      cvips_from_rows(
        $0, Int32(width), Int32(height), Int32(bands), format, space, profile, profile?.count ?? 0, read, context,
        { Unmanaged<AnyObject>.fromOpaque($0.unsafelyUnwrapped).release() })
    }
  }

  /// Reads all rows from the top, several at a time.
  func forEachRows(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    guard let region = vips_region_new(pointer) else { throw LibraryError() }
    defer { cvips_unref(region) }
    let rowLength = width * bands * Int(vips_format_sizeof(bandFormat))
    // The rows around a step that a filter needs are computed again for each step; very large steps take longer than
    // several small ones.
    let step = min(max(16, (1 << 20) / rowLength), 1024)
    var y = 0
    while y < height {
      var area = VipsRect(left: 0, top: Int32(y), width: Int32(width), height: Int32(min(step, height - y)))
      guard vips_region_prepare(region, &area) == 0 else { throw LibraryError() }
      for row in y..<(y + Int(area.height)) {
        try body(UnsafeRawBufferPointer(start: cvips_region_row(region, Int32(row)), count: rowLength))
      }
      y += Int(area.height)
    }
  }
}
