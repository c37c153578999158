public import HTTPTypes
public import Text

/// One stored response: one row of the index, one file, and all that is needed to decide whether it may be reused.
///
/// Times are Unix seconds. The store keeps them and never judges freshness by them.
public struct StoredResponse: Sendable, Equatable {
  /// Never used twice. 0 for what was not stored yet.
  public var id: Int64
  public var key: String
  /// Which credentials the response belongs to; empty for none. A look-up never crosses partitions.
  public var partition: String
  /// Empty for the original as transferred, else the canonical form of the transform that made it.
  public var variant: String
  public var url: String
  public var finalURL: String?
  public var status: Int
  public var headers: HeaderFields
  /// The request's fields that the response's Vary named (RFC 9111 section 4.1).
  public var varyingHeaders: HeaderFields
  /// When the request was sent that brought the response, or the 304 that confirmed it last (RFC 9111 section 4.2.3).
  public var requestTime: Int
  /// When that answer came.
  public var responseTime: Int
  /// When the bytes came; a 304 leaves it as it is.
  public var storedAt: Int
  /// When the bytes came or were confirmed last.
  public var validatedAt: Int
  /// Until when it is fresh, by the policy of the worker that stored or confirmed it.
  public var expiresAt: Int
  public var mediaType: String
  public var format: String?
  public var width: Int?
  public var height: Int?
  public var frames: Int
  public var orientation: Int
  public var byteCount: Int64
  /// SHA-256 of the file, 32 bytes. Empty in a draft: `store` fills it in.
  public var digest: [UInt8]
  /// Whether the file is known to have reached the disk. One that an earlier run of the system wrote may have its size
  /// and not its bytes, after a power loss: it is proven when it is first found whole.
  var isVerified = true
  /// What decoding has told, if anything.
  public var metadata: DecodeMetadata?

  public init(
    id: Int64 = 0, key: String, partition: String = "", variant: String = "", url: String, finalURL: String? = nil,
    status: Int = 200, headers: HeaderFields = [:], varyingHeaders: HeaderFields = [:], requestTime: Int,
    responseTime: Int, storedAt: Int, validatedAt: Int, expiresAt: Int, mediaType: String, format: String? = nil,
    width: Int? = nil, height: Int? = nil, frames: Int = 1, orientation: Int = 1, byteCount: Int64 = 0,
    digest: [UInt8] = [], metadata: DecodeMetadata? = nil
  ) {
    self.id = id
    self.key = key
    self.partition = partition
    self.variant = variant
    self.url = url
    self.finalURL = finalURL
    self.status = status
    self.headers = headers
    self.varyingHeaders = varyingHeaders
    self.requestTime = requestTime
    self.responseTime = responseTime
    self.storedAt = storedAt
    self.validatedAt = validatedAt
    self.expiresAt = expiresAt
    self.mediaType = mediaType
    self.format = format
    self.width = width
    self.height = height
    self.frames = frames
    self.orientation = orientation
    self.byteCount = byteCount
    self.digest = digest
    self.metadata = metadata
  }

  /// The file, relative to the namespace's folder: `7f/0123456789abcd7f-89abcdef.jpg`.
  public var file: String { path(below: "") }

  func path(below folder: String) -> String { FileName(id: id, digest: digest, format: format, below: folder).path }

  /// What tells the stored responses of one key, partition and variant apart: the varying fields, in the order of their
  /// names.
  public var varyKey: ExactString {
    if varyingHeaders.isEmpty { return "" }
    return ExactString(HeaderFields(varyingHeaders.lines.sorted { $0.name < $1.name }).storedText)
  }

  /// How many with other varying fields a tier keeps of one key, partition and variant, for each look-up goes through
  /// them all. One more takes the place of the one that came first (RFC 9111 section 4.1 leaves it open how many to
  /// keep).
  static let mostSelections = 32
}

extension HeaderFields {
  /// `name:value` lines, the form in the index. A line break inside a value (no server can send one) becomes a space.
  var storedText: String {
    let lineFeed = UInt8(ascii: "\n")
    var text: [UInt8] = []
    text.reserveCapacity(lines.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 2 })
    for line in lines {
      text += line.name.utf8
      text.append(UInt8(ascii: ":"))
      let start = text.count
      text += line.value.utf8
      if text[start...].contains(lineFeed) {
        text.replaceSubrange(start..., with: String(line.value.map { $0.isNewline ? " " : $0 }).utf8)
      }
      text.append(lineFeed)
    }
    return String(decoding: text, as: UTF8.self)
  }

  init(storedText text: String) {
    self.init()
    for line in text.utf8.split(separator: 10) {
      guard let colon = line.firstIndex(of: 58) else { continue }
      append(String(Substring(line[..<colon])), String(Substring(line[line.index(after: colon)...])))
    }
  }
}
