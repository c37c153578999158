internal import CVips
internal import CodecCore

extension Picture {
  /// The picture placed in a larger area, whose rest has one colour (0xRRGGBB).
  func placed(x: Int, y: Int, width: Int, height: Int, background: UInt32) throws(LibraryError) -> Picture {
    let picture = try fit(for: background)
    let values = picture.values(of: background)
    return try picture.map {
      cvips_embed($0, $1, Int32(x), Int32(y), Int32(width), Int32(height), values, Int32(values.count))
    }
  }

  /// The picture without alpha, blended onto one colour.
  func flattened(on background: UInt32) throws(LibraryError) -> Picture {
    guard hasAlpha else { return self }
    let picture = try fit(for: background)
    let values = Array(picture.values(of: background).dropLast())
    return try picture.map { cvips_flatten($0, $1, values, Int32(values.count)) }
  }

  /// The picture converted to colour if `color` is not grey.
  private func fit(for color: UInt32) throws(LibraryError) -> Picture {
    let (red, green, blue) = (color >> 16 & 255, color >> 8 & 255, color & 255)
    if bands >= 3 || (red == green && green == blue) { return self }
    return try inColorSpace(VIPS_INTERPRETATION_sRGB)
  }

  /// The value of the opaque colour in each band.
  private func values(of color: UInt32) -> [Double] {
    let parts = bands >= 3 ? [color >> 16 & 255, color >> 8 & 255, color & 255] : [color & 255]
    return parts.map { Double($0) } + (hasAlpha ? [255] : [])
  }

  /// The picture with transparent, antialiased corners. The radius must be at most half of the shorter side.
  func withRoundCorners(radius: Int) throws(LibraryError) -> Picture {
    let mask = try Picture.from(
      Self.roundCorners(width: width, height: height, radius: Double(min(radius, min(width, height) / 2))),
      width: width, height: height)
    guard hasAlpha else { return try Picture.make { cvips_join_bands(pointer, mask.pointer, $0) } }
    let color = try map { cvips_extract_bands($0, $1, 0, Int32(bands - 1)) }
    let alpha = try map { cvips_extract_bands($0, $1, Int32(bands - 1), 1) }
    let product = try Picture.make { cvips_multiply(alpha.pointer, mask.pointer, $0) }
    let scaled = try product.map { cvips_linear($0, $1, 1.0 / 255, 0.5) }
    let masked = try scaled.map { cvips_cast($0, $1, VIPS_FORMAT_UCHAR) }
    return try Picture.make { cvips_join_bands(color.pointer, masked.pointer, $0) }
  }

  /// The opacity of each pixel, by the distance of its middle from the edge of the nearest corner's circle.
  private static func roundCorners(width: Int, height: Int, radius: Double) -> [UInt8] {
    var mask = [UInt8](repeating: 255, count: width * height)
    let corner = Int(radius.rounded(.up))
    for y in 0..<corner {
      for x in 0..<corner {
        let (horizontal, vertical) = (radius - Double(x) - 0.5, radius - Double(y) - 0.5)
        let inside = radius - (horizontal * horizontal + vertical * vertical).squareRoot() + 0.5
        let opacity = UInt8(max(0, min(1, inside)) * 255)
        for row in [y, height - 1 - y] {
          mask[row * width + x] = opacity
          mask[row * width + width - 1 - x] = opacity
        }
      }
    }
    return mask
  }

  /// An animation of frames of one size, with the delays and the play count of `original`.
  static func stacked(_ frames: [Picture], from original: Picture) throws(LibraryError) -> Picture {
    var pointers: [Pointer?] = frames.map(\.pointer)
    let stack = try Picture.make { cvips_stack(&pointers, $0, Int32(frames.count)) }
    // Metadata may only be set on an image that has no other owner.
    let animation = try stack.map { cvips_copy($0, $1) }
    cvips_animate(animation.pointer, original.pointer, Int32(frames.first?.height ?? 0))
    return animation
  }
}

extension Picture {
  enum Interest {
    case attention, entropy

    fileprivate var value: VipsInteresting {
      switch self {
      case .attention: VIPS_INTERESTING_ATTENTION
      case .entropy: VIPS_INTERESTING_ENTROPY
      }
    }
  }

  /// The left and top edge of the most interesting part of this size, which must fit into the picture. The picture must
  /// be in memory, because libvips reads it more than once.
  func start(ofWidth width: Int, height: Int, by interest: Interest) throws(LibraryError) -> (x: Int, y: Int) {
    let part = try map { cvips_smartcrop($0, $1, Int32(width), Int32(height), interest.value) }
    // vips_extract_area sets the offset to the negative position of the part.
    return (Int(-vips_image_get_xoffset(part.pointer)), Int(-vips_image_get_yoffset(part.pointer)))
  }
}
