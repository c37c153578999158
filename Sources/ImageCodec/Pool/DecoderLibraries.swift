/// The libraries and fonts that a decoder process loads before its sandbox closes; none can be loaded later.
///
/// The libraries that few images need would add half to the processor time of each start.
package enum DecoderLibraries: String, Sendable {
  /// The libraries of all formats except HEIC, JPEG XL and SVG.
  case common
  /// The common libraries, libheif, libjxl and the fonts for SVG.
  case all

  package func include(_ other: DecoderLibraries) -> Bool { self == .all || other == .common }
}

extension ImageFormat {
  /// The minimum libraries that a decoder needs to read or write this format.
  package var libraries: DecoderLibraries { [.heic, .jxl, .svg].contains(self) ? .all : .common }
}

extension DecodeTask {
  /// The minimum libraries that a decoder needs for the source and the result.
  var libraries: DecoderLibraries {
    guard case .encoded = output, let written = transform.format?.libraries, written == .all else {
      return header.format.libraries
    }
    return .all
  }
}
