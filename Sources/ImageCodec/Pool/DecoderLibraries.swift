/// The libraries and fonts that a decoder process loads before its sandbox closes; it can load none later.
///
/// Those that few images need would add half to the processor time of each start.
package enum DecoderLibraries: String, Sendable {
  /// Those of all formats but HEIC, JPEG XL and SVG.
  case common
  /// The common ones, libheif, libjxl and the fonts of SVG.
  case all

  package func include(_ other: DecoderLibraries) -> Bool { self == .all || other == .common }
}

extension ImageFormat {
  /// The libraries that its decoder has at least.
  package var libraries: DecoderLibraries { [.heic, .jxl, .svg].contains(self) ? .all : .common }
}
