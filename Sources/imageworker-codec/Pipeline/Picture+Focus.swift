internal import CVips

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
