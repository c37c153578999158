internal import CAVIF
internal import CJPEG
internal import CLCMS
internal import CRSVG
internal import CVips
internal import CWebP
internal import Platform

/// The versions of the image libraries that this process has loaded.
enum LibraryVersions {
  /// Each with its name before it.
  static var all: [String] {
    var versions = [
      "libvips \(vips_version(0)).\(vips_version(1)).\(vips_version(2))",
      "librsvg \(rsvg_major_version).\(rsvg_minor_version).\(rsvg_micro_version)",
      "libavif \(String(cString: avifVersion()))", "libjpeg-turbo \(thousands(Int(LIBJPEG_TURBO_VERSION_NUMBER)))",
      "libwebp \(bytes(Int(WebPGetDecoderVersion())))", "lcms2 \(Double(cmsGetEncodedCMMversion()) / 1000)",
    ]
    if let version: @convention(c) () -> UnsafePointer<CChar> = function("heif_get_version") {
      versions.append("libheif \(String(cString: version()))")
    }
    if let version: @convention(c) () -> UInt32 = function("JxlDecoderVersion") {
      versions.append("libjxl \(thousands(Int(version())))")
    }
    return versions
  }

  /// A function of a library that libvips loads itself, if it does.
  private static func function<Function>(_ name: String) -> Function? {
    dlsym(nil, name).map { unsafeBitCast($0, to: Function.self) }
  }

  private static func thousands(_ number: Int) -> String {
    "\(number / 1_000_000).\(number / 1000 % 1000).\(number % 1000)"
  }

  private static func bytes(_ number: Int) -> String { "\(number >> 16).\(number >> 8 & 255).\(number & 255)" }
}
