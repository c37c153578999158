/// The libraries and fonts that a decoder loads before its sandbox closes; none can be loaded later.
///
/// The libraries that few images need would add half to the processor time of each start, and each mapped library to
/// that of each child.
package enum DecoderLibraries: String, Sendable {
  /// libjpeg, libwebp, libdeflate, zlib and Little CMS, for the JPEGs, PNGs and WebPs that need no other.
  case plain
  /// The libraries of all formats except HEIC, JPEG XL and SVG.
  case common
  /// The common libraries, libheif, libjxl and the fonts for SVG.
  case all

  /// Whether a decoder with these libraries can be used where those others are needed. Every decoder could decode a
  /// plain image, but only a small one can be forked for each.
  package func include(_ other: DecoderLibraries) -> Bool { self == other || self == .all && other == .common }

  /// Whether decoders with these libraries count in the same limit.
  func share(limitOf other: DecoderLibraries) -> Bool { (self == .plain) == (other == .plain) }

  /// The name of the decoder's executable.
  var program: String { self == .plain ? "imageworker-plain" : "imageworker-codec" }
}

extension ImageFormat {
  /// The minimum libraries that a decoder needs to read or write this format.
  package var libraries: DecoderLibraries { [.heic, .jxl, .svg].contains(self) ? .all : .common }
}

extension DecodeTask {
  /// The minimum libraries that a decoder needs for the source and the result, as far as the header says.
  var libraries: DecoderLibraries {
    if header.frames <= 1, CodecRequest(self).isForPlainImage { return .plain }
    let written: [ImageFormat?] =
      switch output {
      case .encoded: [transform.format]
      case .renditions(let set, _): set.renditions.map(\.transform.format)
      default: []
      }
    return written.contains { $0?.libraries == .all } ? .all : header.format.libraries
  }
}

extension CodecRequest {
  /// Whether the source is a JPEG, PNG or WebP that is only checked, or cut, resized and turned to pixels or another
  /// such file.
  package var isForPlainImage: Bool {
    let plain: [ImageFormat] = [.jpeg, .png, .webp]
    guard plain.contains(format) else { return false }
    switch output {
    case .check: return !wantsPlaceholder
    case .placeholder: return transform.isPlain
    case .pixels: return transform.isPlain
    case .encoded: return transform.isPlain && plain.contains(transform.format ?? format)
    case .renditions(_, let facts, checks: false): return facts.isEmpty && parts.allSatisfy(\.isForPlainImage)
    case .facts, .preview, .renditions: return false
    }
  }
}

extension Transform {
  /// Whether the image is only cut, resized and turned.
  fileprivate var isPlain: Bool {
    blur == 0 && cornerRadius == 0 && !isGrayscale && fit != .contain && !(fit == .cover && focus.needsPixels)
  }
}
