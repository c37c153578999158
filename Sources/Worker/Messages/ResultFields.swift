internal import HTTPTypes
internal import ImageStore
internal import LineRPC
internal import Loading

/// The members of results.
extension JSONWriter {
  mutating func members(of image: LoadedImage, url: String?) {
    if let url { member("url", url) }
    member("key", image.key)
    member("cache", image.cache.rawValue)
    member("bytes", image.byteCount)
    member("mediaType", image.mediaType)
    if let format = image.format { member("format", format) }
    if let width = image.width { member("width", width) }
    if let height = image.height { member("height", height) }
    if let path = image.path { member("path", path) }
    if let data = image.data { member("data", base64: data) }
    if let pixels = image.pixels { members(of: pixels) }
    if let source = image.source { members(of: source) }
    if let placeholder = image.placeholder { members(of: placeholder) }
    members(of: image.facts)
    if let digest = image.digest { member("digest", "sha256-\(digest.hexadecimal)") }
    if image.isDamaged { member("damaged", true) }
    // The URLs of a host have the same limit.
    if let finalURL = image.finalURL, finalURL.asciiJSONLength <= ResourceURL.maximumLength {
      member("finalURL", finalURL)
    }
    member("kept", image.isKept)
    if image.frames > 1 { member("frames", image.frames) }
    if image.orientation != 1 { member("orientation", image.orientation) }
    if let response = image.response { member("response", ResponseFields.json(response)) }
    if image.attempts > 1 { member("attempts", image.attempts) }
    timing(of: image)
  }

  private mutating func timing(of image: LoadedImage) {
    object("timing") { writer in
      guard let timeline = image.timeline else {
        writer.member("queuedMs", 0)
        writer.member("firstByteMs", 0)
        return writer.member("totalMs", 0)
      }
      let isTransferred = image.cache == .miss || image.cache == .revalidated
      writer.members(of: timeline, firstByte: isTransferred ? timeline.firstByte : nil)
    }
  }

  /// The result of a probe.
  mutating func members(ofProbe image: LoadedImage, url: String) {
    member("url", url)
    member("key", image.key)
    member("cache", image.cache.rawValue)
    if let length = image.probe.map({ $0.length }) ?? image.byteCount { member("bytes", length) }
    if let probe = image.probe { member("received", probe.received) }
    member("mediaType", image.mediaType)
    if let format = image.format { member("format", format) }
    if let width = image.width { member("width", width) }
    if let height = image.height { member("height", height) }
    if image.frames > 1 { member("frames", image.frames) }
    if image.orientation != 1 { member("orientation", image.orientation) }
    if let finalURL = image.finalURL, finalURL.asciiJSONLength <= ResourceURL.maximumLength {
      member("finalURL", finalURL)
    }
    if let tag = image.response?.headers["etag"] { member("etag", tag) }
    if let date = image.response?.headers["last-modified"] { member("lastModified", date) }
    if image.attempts > 1 { member("attempts", image.attempts) }
    timing(of: image)
  }

  private mutating func members(of pixels: LoadedImage.Pixels) {
    object("pixels") { writer in
      writer.member("path", pixels.path)
      writer.member("offset", 0)
      writer.member("width", pixels.width)
      writer.member("height", pixels.height)
      writer.member("stride", pixels.stride)
      writer.member("channels", pixels.channels)
      writer.member("bytes", pixels.byteCount)
    }
  }

  private mutating func members(of source: LoadedImage.Source) {
    object("source") { writer in
      writer.member("bytes", source.byteCount)
      writer.member("format", source.format)
      if let width = source.width { writer.member("width", width) }
      if let height = source.height { writer.member("height", height) }
    }
  }

  private mutating func members(of placeholder: LoadedImage.Placeholder) {
    object("placeholder") { writer in
      writer.member("thumbhash", base64: placeholder.thumbHash)
      let digits = String(placeholder.color & 0xFFFFFF, radix: 16)
      writer.member("color", "#" + String(repeating: "0", count: 6 - digits.count) + digits)
    }
  }

  private mutating func members(of facts: LoadedImage.Facts) {
    if let hash = facts.perceptualHash {
      let digits = String(hash, radix: 16)
      member("perceptualHash", String(repeating: "0", count: 16 - digits.count) + digits)
    }
    if let exif = facts.exif { object("exif") { $0.members(of: exif) } }
    if let gps = facts.gps, !gps.isEmpty { object("gps") { $0.members(of: gps) } }
  }

  private mutating func members(of fields: [LoadedImage.Facts.Field]) {
    for field in fields {
      key(escaping: field.name)
      switch field.value {
      case .text(let text): value(text)
      case .number(let number): if let whole = Int64(exactly: number) { value(whole) } else { value(number) }
      }
    }
  }

  mutating func members(of summary: Prefetch.Summary) {
    member("total", summary.total)
    member("downloaded", summary.downloaded)
    member("cached", summary.cached)
    member("failed", summary.failed)
    member("cancelled", summary.cancelled)
    member("bytes", summary.bytes)
    array("errors") { writer in
      var budget = ResponseFields.lineBudget
      for (url, error) in summary.errors {
        budget -= url.asciiJSONLength + error.message.asciiJSONLength + 64
        guard budget >= 0 else { break }
        writer.beginObject()
        writer.member("url", url)
        writer.member("kind", error.kind.rawValue)
        writer.member("message", error.message)
        writer.endObject()
      }
    }
  }
}

/// The head of an HTTP response in a result.
enum ResponseFields {
  /// The maximum length in bytes of all lists of a line, which keeps lines below 60 kB.
  static let lineBudget = 32 << 10

  /// `{status, headers}`. Repeated fields are joined with `, `, except `set-cookie`, which is a list. Fields beyond
  /// `lineBudget` are left out.
  static func json(_ response: LoadedImage.Response) -> JSON {
    var headers = JSONObject()
    var budget = lineBudget
    for name in response.headers.lines.map(\.name) where headers[name] == nil {
      let values = response.headers.values(of: name)
      budget -= name.asciiJSONLength + values.reduce(8) { $0 + $1.asciiJSONLength + 4 }
      guard budget >= 0 else { break }
      headers.set(
        name, name == "set-cookie" ? .array(values.map(JSON.string)) : .string(values.joined(separator: ", ")))
    }
    return .object(["status": .integer(Int64(response.status)), "headers": .object(headers)])
  }
}
