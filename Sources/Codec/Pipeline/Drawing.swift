internal import CRSVG
internal import CodecCore
internal import ImageCodec

/// Draws an SVG in the requested size, so that its lines are sharp in any size.
///
/// Drawing has no access to network and files: scripts do not run, and only references to the SVG itself and to `data:`
/// URLs are resolved. librsvg limits elements and entities; time and memory are limited by the caller.
struct Drawing {
  let file: UnsafeRawBufferPointer
  /// The intrinsic size, in pixels.
  let width: Int
  let height: Int

  /// The maximum side of a cairo surface.
  static let maxSide = 32_767

  /// - Parameters:
  ///   - crop: the part to draw, in intrinsic pixels.
  ///   - size: the size of the result.
  func raster(_ crop: Transform.Crop, size: (width: Int, height: Int)) throws -> Raster {
    guard max(size.width, size.height) <= Self.maxSide else {
      throw DecodeError.tooLong(sideOf: "a drawing", Self.maxSide, width: size.width, height: size.height)
    }
    let raster = try Raster(width: size.width, height: size.height)
    var place = crsvg_place()
    (place.width, place.height) = (Double(width), Double(height))
    (place.scale_x, place.scale_y) = (
      Double(size.width) / Double(crop.width), Double(size.height) / Double(crop.height)
    )
    (place.offset_x, place.offset_y) = (-Double(crop.x) * place.scale_x, -Double(crop.y) * place.scale_y)
    let wrong = crsvg_draw(
      file.baseAddress, file.count, place, raster.pixels.baseAddress, Int32(size.width), Int32(size.height))
    if let wrong {
      defer { g_free(wrong) }
      throw LibraryError(String(cString: wrong))
    }
    for index in raster.pixels.indices { raster.pixels[index] = Self.straight(raster.pixels[index]) }
    return raster
  }

  func raster() throws -> Raster {
    try raster(Transform.Crop(x: 0, y: 0, width: width, height: height), size: (width, height))
  }

  /// Converts premultiplied A R G B, alpha in the highest byte, to straight R G B A, red in the lowest byte.
  private static func straight(_ pixel: UInt32) -> UInt32 {
    let alpha = pixel >> 24
    if alpha == 0 { return 0 }
    func color(_ shift: UInt32) -> UInt8 {
      let value = pixel >> shift & 255
      return UInt8(alpha == 255 ? value : min(255, (value * 255 + alpha / 2) / alpha))
    }
    return Raster.pixel(color(16), color(8), color(0), UInt8(alpha))
  }

  /// The generic CSS font families of text. A font must be opened before the sandbox closes.
  private static let families = ["sans-serif", "serif", "monospace"]

  /// Images of one pixel, as `data:` URLs, in the formats for which gdk-pixbuf opens a loader, and a drawing. An image
  /// without a media type is not drawn: GIO looks at the files with its types again every five seconds, and may not.
  private static let images = [
    "image/gif;base64,\(pixelInGIF)", "image/bmp;base64,\(pixelInBMP)",
    "image/svg+xml,%3Csvg xmlns=%22http://www.w3.org/2000/svg%22/%3E",
  ]
  private static let pixelInGIF = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
  private static let pixelInBMP =
    "Qk06AAAAAAAAADYAAAAoAAAAAQAAAAEAAAABABgAAAAAAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAD/AA=="

  /// Finds and opens the fonts and the loaders of images while the sandbox is open. It must run on the thread that
  /// draws, because Pango has a font map for each thread (`pango_cairo_font_map_get_default`). It takes 20 ms.
  static func warmUp() {
    crsvg_keep_encodings()
    let texts = families.map { "<text y='9' font-family='\($0)'>A<tspan font-weight='bold'>A</tspan></text>" }
    let images = images.map { "<image width='1' height='1' href='data:\($0)'/>" }
    let bytes = Array("<svg xmlns='http://www.w3.org/2000/svg'>\((texts + images).joined())</svg>".utf8)
    let names = families.map { strdup($0) }
    defer { for name in names { free(name) } }
    names.map { UnsafePointer($0) }.withUnsafeBufferPointer { crsvg_keep_families($0.baseAddress, Int32($0.count)) }
    for family in families { crsvg_keep_font(family) }
    bytes.withUnsafeBytes { _ = try? Drawing(file: $0, width: 16, height: 16).raster() }
    codec_settle_font_thread()
  }
}
