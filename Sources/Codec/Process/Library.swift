internal import CAVIF
internal import CVips
internal import CodecCore
internal import ImageCodec
internal import Platform

/// The initialisation and the formats of libvips.
enum Library {
  private(set) nonisolated(unsafe) static var formats = CodecFormats()  // set once, before there is a second thread

  /// Starts libvips with only what decoding needs: no cache; no threads to share an image; no modules, except those of
  /// HEIF and JPEG XL with all libraries; and only the loaders listed here.
  static func start(_ libraries: DecoderLibraries) {
    // libvips would load its modules (Magick, Poppler, OpenSlide ...) from here. They take 90 ms and are not needed.
    let library = cvips_library_path().map { String(cString: $0) }
    setenv("VIPSHOME", "/nonexistent", 1)
    // libvips would put large images into a temporary file, which the sandbox forbids; the memory limit applies
    // instead.
    setenv("VIPS_DISC_THRESHOLD", "1000g", 1)
    guard vips_init("imageworker-codec") == 0 else { exit(EX_UNAVAILABLE) }
    vips_concurrency_set(1)
    vips_cache_set_max(0)
    if libraries == .all, let library {
      for (loader, module) in [("heifload_source", "heif"), ("jxlload_source", "jxl")] where !has(loader) {
        open(module: module, beside: library)
      }
    }
    vips_operation_block_set("VipsForeignLoad", 1)
    for name in ["Jpeg", "Webp", "Tiff", "Heif"] {
      vips_operation_block_set("VipsForeignLoad\(name)", 0)
    }
    vips_block_untrusted_set(1)
    // libvips marks them as untrusted, because libjxl is young. It runs in the sandbox here.
    for name in ["LoadJxl", "SaveJxl"] { vips_operation_block_set("VipsForeign\(name)", 0) }
    formats = CodecFormats(
      decode: ImageFormat.allCases.filter { libraries.include($0.libraries) && canDecode($0) },
      encode: ImageFormat.allCases.filter { libraries.include($0.libraries) && canEncode($0) },
      libraries: LibraryVersions.all)
    warmUp()
    if libraries == .all { Drawing.warmUp() }
  }

  private static func open(module: String, beside library: String) {
    guard let slash = library.lastIndex(of: "/") else { return }
    let directory = "\(library[..<slash])/vips-modules-\(VIPS_MAJOR_VERSION).\(VIPS_MINOR_VERSION)"
    _ = g_module_open("\(directory)/vips-\(module).so", G_MODULE_BIND_LAZY)
  }

  private static func has(_ operation: String) -> Bool { cvips_has_operation(operation) != 0 }

  private static func canDecode(_ format: ImageFormat) -> Bool {
    if format == .avif { return avifCodecName(AVIF_CODEC_CHOICE_AUTO, AVIF_CODEC_FLAG_CAN_DECODE.rawValue) != nil }
    if format.isDecodedWhole || format == .png { return true }
    guard let loader = format.loader, has(loader) else { return false }
    switch format {
    case .heic: return HEIFCodecs.have("decoder", .hevc)
    default: return true
    }
  }

  private static func canEncode(_ format: ImageFormat) -> Bool {
    switch format {
    case .jpeg: true
    case .png: has("pngsave_buffer")
    case .webp: has("webpsave_buffer")
    case .gif: has("gifsave_buffer")
    case .avif: avifCodecName(AVIF_CODEC_CHOICE_AOM, AVIF_CODEC_FLAG_CAN_ENCODE.rawValue) != nil
    case .jxl: has("jxlsave_buffer")
    default: false
    }
  }

  /// Runs the first-use initialisation of each library while the sandbox is open: the children would repeat it, and
  /// cannot open files or allocate memory for the filters that libvips compiles.
  ///
  /// Only regions are computed here. Everything else of libvips starts threads, which a child does not have.
  private static func warmUp() {
    guard let picture = try? Picture.grey(width: 64, height: 64), let jpeg = try? picture.encoded(.jpeg) else { return }
    let input = Input(copying: jpeg)
    try? input.open(.jpeg, strictness: VIPS_FAIL_ON_ERROR).stretched(toWidth: 16, height: 16).forEachRows { _ in }
    vips_error_clear()
  }
}

/// The codecs of libheif. libheif is asked directly, because libvips knows only whether libheif is present.
private enum HEIFCodecs: UInt32 {
  case hevc = 1

  static func have(_ side: String, _ codec: HEIFCodecs) -> Bool {
    guard let library = dlopen(sharedLibrary("libheif", version: 1), RTLD_LAZY | RTLD_NOLOAD) else { return false }
    defer { dlclose(library) }
    guard let symbol = dlsym(library, "heif_have_\(side)_for_format") else { return false }
    typealias Question = @convention(c) (UInt32) -> Int32
    return unsafeBitCast(symbol, to: Question.self)(codec.rawValue) != 0
  }
}

extension ImageFormat {
  /// Whether this program decodes the format completely and without libvips.
  var isDecodedWhole: Bool { [.avif, .bmp, .ico, .gif, .svg].contains(self) }

  /// The libvips operation that reads only this format; nil if libvips does not read it.
  var loader: String? {
    switch self {
    case .jpeg: "jpegload_source"
    case .webp: "webpload_source"
    case .heic: "heifload_source"
    case .tiff: "tiffload_source"
    case .jxl: "jxlload_source"
    case .png, .avif, .jp2, .gif, .bmp, .ico, .svg: nil
    }
  }
}

extension LibraryError {
  /// Takes libvips' messages about its last failures.
  init() {
    let lines = String(cString: vips_error_buffer()).split(separator: "\n")
    vips_error_clear()
    // libheif looks beyond the end of a file without need, and tells its reason afterwards.
    self.init(lines.first { !$0.has(": bad seek to ") } ?? lines.first ?? "the image cannot be decoded")
  }
}
