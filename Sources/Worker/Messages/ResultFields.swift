internal import HTTPTypes
internal import ImageCodec
internal import ImageStore
internal import LineRPC
internal import Loading

/// The members of results.
extension JSONWriter {
  mutating func members(of image: LoadedImage, url: String?) {
    if let url { member("url", url) }
    member("key", image.key)
    member("cache", image.cache.rawValue)
    member("bytes", image.content.byteCount)
    members(of: image.content)
    if let path = image.path { member("path", path) }
    if let data = image.data { member("data", base64: data) }
    if let pixels = image.pixels { members(of: pixels) }
    if let source = image.source { members(ofSource: source) }
    membersOfDecode(image)
    member("finalURL", short: image.finalURL)
    if let expiresAt = image.expiresAt { member("expiresAt", Timestamp.format(expiresAt)) }
    member("kept", image.isKept)
    if let response = image.response { member("response", ResponseFields.json(response)) }
    if image.attempts > 1 { member("attempts", image.attempts) }
    timing(of: image)
  }

  /// A text of a server. It is left out if it is longer than a URL of the host may be, so that a line stays short.
  mutating func member(_ name: StaticString, short text: String?) {
    if let text, text.asciiJSONLength <= ResourceURL.maximumLength { member(name, text) }
  }

  /// The facts about an image that have the same names wherever they are told.
  mutating func members(of content: ImageDescription) {
    member("mediaType", content.mediaType)
    if let header = content.header { members(of: header) }
  }

  private mutating func members(of header: ImageHeader) {
    member("format", header.format.rawValue)
    if let width = header.width { member("width", width) }
    if let height = header.height { member("height", height) }
    if header.frames > 1 { member("frames", header.frames) }
    guard header.orientation > 1 else { return }
    member("orientation", header.orientation)
    guard let (width, height) = header.upright else { return }
    object("upright") { writer in
      writer.member("width", width)
      writer.member("height", height)
    }
  }

  private mutating func timing(of image: LoadedImage, isProcess: Bool = false) {
    object("timing") { writer in
      guard let timeline = image.timeline else {
        writer.member("queuedMs", 0)
        writer.member("firstByteMs", 0)
        return writer.member("totalMs", 0)
      }
      let isTransferred = !isProcess && (image.cache == .miss || image.cache == .revalidated)
      writer.members(of: timeline, firstByte: isTransferred ? timeline.firstByte : nil)
    }
  }

  /// The findings of decodes about the original, and the files made of it.
  private mutating func membersOfDecode(_ image: LoadedImage) {
    if let placeholder = image.placeholder { members(of: placeholder) }
    members(of: image.facts)
    if !image.content.digest.isEmpty { member("digest", "sha256-\(image.content.digest.hexadecimal)") }
    if image.notes.contains(.damaged) { member("damaged", true) }
    if let hdr = image.notes.hdr { member("hdr", hdr) }
    if image.outputs.isEmpty { return }
    object("outputs") { writer in
      for output in image.outputs {
        writer.key(escaping: output.name)
        writer.beginObject()
        writer.members(of: output)
        writer.endObject()
      }
    }
  }

  private mutating func members(of output: LoadedImage.Output) {
    member("bytes", output.content.byteCount)
    members(of: output.content)
    if let quality = output.quality { member("quality", quality) }
    if let path = output.path { member("path", path) }
    if let data = output.data { member("data", base64: data) }
  }

  /// The result of `process`.
  mutating func members(ofProcess image: LoadedImage) {
    member("bytes", image.content.byteCount)
    members(of: image.content)
    membersOfDecode(image)
    timing(of: image, isProcess: true)
  }

  /// The result of a probe.
  mutating func members(ofProbe image: LoadedImage, url: String) {
    member("url", url)
    member("key", image.key)
    member("cache", image.cache.rawValue)
    if let length = image.probe.map({ $0.length }) ?? image.content.byteCount { member("bytes", length) }
    if let probe = image.probe { member("received", probe.received) }
    members(of: image.content)
    member("finalURL", short: image.finalURL)
    member("etag", short: image.response?.headers["etag"])
    member("lastModified", short: image.response?.headers["last-modified"])
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

  private mutating func members(ofSource source: ImageDescription) {
    object("source") { writer in
      writer.member("bytes", source.byteCount)
      if let header = source.header { writer.members(of: header) }
    }
  }

  private mutating func members(of placeholder: Placeholder) {
    object("placeholder") { writer in
      writer.member("thumbhash", base64: placeholder.thumbHash)
      let digits = String(placeholder.color & 0xFFFFFF, radix: 16)
      writer.member("color", "#" + String(repeating: "0", count: 6 - digits.count) + digits)
    }
  }

  private mutating func members(of facts: ImageFacts) {
    if let hash = facts.perceptualHash {
      let digits = String(hash, radix: 16)
      member("perceptualHash", String(repeating: "0", count: 16 - digits.count) + digits)
    }
    if let container = facts.container { object("container") { $0.members(of: container) } }
    if let exif = facts.exif { object("exif") { $0.members(of: exif) } }
    if let gps = facts.gps, !gps.isEmpty { object("gps") { $0.members(of: gps) } }
  }

  private mutating func members(of container: ContainerFacts) {
    if let hasAlpha = container.hasAlpha { member("hasAlpha", hasAlpha) }
    if let colorSpace = container.colorSpace { member("colorSpace", colorSpace) }
    if let bitDepth = container.bitDepth { member("bitDepth", bitDepth) }
    if let hasGPS = container.hasGPS { member("hasGPS", hasGPS) }
    if let c2pa = container.c2pa { member("c2pa", c2pa) }
  }

  private mutating func members(of fields: [EXIFField: EXIFValue]) {
    for field in EXIFField.allCases {
      guard let found = fields[field] else { continue }
      key(escaping: field.rawValue)
      switch found {
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

/// The members of `timing`.
extension JSONWriter {
  /// - Parameter firstByte: the time until the first byte of the response; nil if it is the total.
  mutating func members(of timeline: LoadTimeline, firstByte: Int64?) {
    member("queuedMs", thousandths: timeline.queued ?? 0)
    for phase in LoadTimeline.Phase.allCases {
      guard let duration = timeline[phase] else { continue }
      member(phase.member, thousandths: duration)
    }
    member("firstByteMs", thousandths: firstByte ?? timeline.total)
    member("totalMs", thousandths: timeline.total)
  }
}

extension LoadTimeline {
  /// The `timing` of an error, which has no `firstByteMs`.
  var members: JSONObject {
    var members: JSONObject = ["queuedMs": .number(Double(queued ?? 0) / 1000)]
    for phase in Phase.allCases {
      if let duration = self[phase] { members.set("\(phase.member)", .number(Double(duration) / 1000)) }
    }
    members.set("totalMs", .number(Double(total) / 1000))
    return members
  }
}
