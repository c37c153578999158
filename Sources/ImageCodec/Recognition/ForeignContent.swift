internal import Platform

/// Content that is recognisably something else than an image that can be decoded. The raw value is its media type.
public enum ForeignContent: String, Sendable, CaseIterable {
  case pdf = "application/pdf"
  case postScript = "application/postscript"
  case html = "text/html"
  case xml = "text/xml"
  case json = "application/json"
  case mp4 = "video/mp4"
  case quickTime = "video/quicktime"
  case threeGP = "video/3gpp"
  case webm = "video/webm"
  case matroska = "video/x-matroska"
  case avi = "video/x-msvideo"
  case mpegAudio = "audio/mpeg"
  case mpeg4Audio = "audio/mp4"
  case ogg = "application/ogg"
  case wave = "audio/wav"
  case zip = "application/zip"
  case gzip = "application/gzip"
  case sevenZip = "application/x-7z-compressed"
  case rar = "application/vnd.rar"
  case photoshop = "image/vnd.adobe.photoshop"
  /// A TIFF to `Recognition`, which knows it from other TIFFs only when it is decoded.
  case dng = "image/x-adobe-dng"

  /// The name in a sentence, with its article.
  public var name: String {
    switch self {
    case .pdf: "a PDF"
    case .postScript: "a PostScript document"
    case .html: "an HTML page"
    case .xml: "an XML document"
    case .json: "JSON"
    case .mp4: "an MP4 video"
    case .quickTime: "a QuickTime video"
    case .threeGP: "a 3GP video"
    case .webm: "a WebM video"
    case .matroska: "a Matroska video"
    case .avi: "an AVI video"
    case .mpegAudio: "an MP3 recording"
    case .mpeg4Audio: "an MPEG-4 recording"
    case .ogg: "an Ogg recording"
    case .wave: "a WAV recording"
    case .zip: "a ZIP archive"
    case .gzip: "a gzip archive"
    case .sevenZip: "a 7z archive"
    case .rar: "a RAR archive"
    case .photoshop: "a Photoshop document"
    case .dng: "a DNG"
    }
  }

  /// Recognises content that `Recognition` does not know by its first bytes. Nil if it is not certain what it is.
  public init?(prefix: some Sequence<UInt8>) {
    let bytes = Array(prefix.prefix(Self.prefixLength))
    let signature = Self.signatures.first { bytes.dropFirst($0.offset).starts(with: $0.bytes) }
    guard let content = signature?.content ?? Self.media(bytes) ?? Self.text(bytes) else { return nil }
    self = content
  }

  private static let prefixLength = 1024

  private static let signatures: [(content: ForeignContent, offset: Int, bytes: [UInt8])] = [
    (.pdf, 0, Array("%PDF-".utf8)), (.postScript, 0, Array("%!PS".utf8)), (.photoshop, 0, Array("8BPS".utf8)),
    (.zip, 0, Array("PK\u{3}\u{4}".utf8)), (.zip, 0, Array("PK\u{5}\u{6}".utf8)), (.gzip, 0, [0x1F, 0x8B, 8]),
    (.sevenZip, 0, Array("7z".utf8) + [0xBC, 0xAF, 0x27, 0x1C]), (.rar, 0, Array("Rar!\u{1A}\u{7}".utf8)),
    (.ogg, 0, Array("OggS".utf8)), (.mpegAudio, 0, Array("ID3".utf8)),
    (.avi, 8, Array("AVI LIST".utf8)), (.wave, 8, Array("WAVE".utf8)),
  ]

  /// Matroska and WebM (RFC 9559), and the files of ISO/IEC 14496-12, by their major brand.
  private static func media(_ bytes: [UInt8]) -> ForeignContent? {
    if bytes.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) {
      return bytes.prefix(64).has("webm".utf8) ? .webm : .matroska
    }
    guard bytes.count >= 12, bytes.dropFirst(4).starts(with: "ftyp".utf8) else { return nil }
    switch String(decoding: bytes[8..<12], as: UTF8.self) {
    case "isom", "iso2", "iso3", "iso4", "iso5", "iso6", "mp41", "mp42", "avc1", "dash", "M4V ", "MSNV": return .mp4
    case "M4A ", "M4B ": return .mpeg4Audio
    case "qt  ": return .quickTime
    case let brand where brand.hasPrefix("3g"): return .threeGP
    default: return nil
    }
  }

  /// The elements with which a page without a document type may begin (https://mimesniff.spec.whatwg.org, section 7.1).
  private static let elements = [
    "html", "head", "script", "iframe", "h1", "div", "font", "table", "a", "style", "title", "b", "body", "br", "p",
  ]

  private static func text(_ bytes: [UInt8]) -> ForeignContent? {
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    let text = String(decoding: bytes.starts(with: mark) ? bytes.dropFirst(3) : bytes[...], as: UTF8.self).lowercased()
      .drop(while: \.isWhitespace)
    if text.hasPrefix("<?xml") { return text.has("<html") ? .html : .xml }
    if text.hasPrefix("<!doctype html") { return .html }
    if text.hasPrefix("<") {
      let name = text.dropFirst().prefix { $0.isASCII && ($0.isLetter || $0.isNumber) }
      let end = text[name.endIndex...].first
      return elements.contains(String(name)) && (end == ">" || end?.isWhitespace == true) ? .html : nil
    }
    let start = text.filter { !$0.isWhitespace }.prefix(2)
    return ["{\"", "[{", "[\""].contains(start) ? .json : nil
  }
}
