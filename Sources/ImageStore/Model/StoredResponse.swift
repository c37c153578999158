public import HTTPCaching
public import HTTPTypes
public import Text

/// One stored response: one row of the index, one file, and all values that decide whether it may be reused.
///
/// Times are Unix seconds. The store does not evaluate freshness.
public struct StoredResponse: Sendable, Equatable {
  /// Unique, never reused; 0 if the response is not stored yet.
  public var id: Int64
  public var key: String
  /// The credentials that the response belongs to; empty if none. A look-up never crosses partitions.
  public var partition: String
  /// Empty for the original as transferred, otherwise the canonical form of the transform that made it.
  public var variant: String
  public var url: String
  public var finalURL: String?
  public var status: Int
  public var headers: HeaderFields
  /// The request fields that the Vary of the response names (RFC 9111 section 4.1).
  public var varyingHeaders: HeaderFields
  /// When the request was sent that returned the response, or the last 304 for it (RFC 9111 section 4.2.3).
  public var requestTime: Int
  /// When that response or 304 arrived.
  public var responseTime: Int
  /// When the body arrived; a 304 does not change it.
  public var storedAt: Int
  /// When the body arrived or was last revalidated.
  public var validatedAt: Int
  /// The end of freshness by the policy of the worker that stored or revalidated it.
  public var expiresAt: Int
  /// In a draft without the digest, and maybe without the size; `store` sets them.
  public var content: ImageDescription
  /// Whether the file is known to be completely on disk. After a power loss, a file written by an earlier run of the
  /// system may have its size but not its bytes; it is verified when its digest first matches.
  var isVerified = true
  /// The metadata that decoding has found; nil if there is none.
  public var metadata: DecodeMetadata?

  public init(
    id: Int64 = 0, key: String, partition: String = "", variant: String = "", url: String, finalURL: String? = nil,
    status: Int = 200, headers: HeaderFields = [:], varyingHeaders: HeaderFields = [:], requestTime: Int,
    responseTime: Int, storedAt: Int, validatedAt: Int, expiresAt: Int, content: ImageDescription,
    metadata: DecodeMetadata? = nil
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
    self.content = content
    self.metadata = metadata
  }

  /// The path of the file, relative to the folder of the namespace: `7f/0123456789abcd7f-89abcdef.jpg`.
  public var file: String { path(below: "") }

  func path(below folder: String) -> String {
    FileName(id: id, digest: content.digest, format: content.format, below: folder).path
  }

  /// The secondary key (RFC 9111 section 4.1): the varying fields sorted by name. It distinguishes the responses of one
  /// key, partition and variant.
  public var varyKey: ExactString {
    if varyingHeaders.isEmpty { return "" }
    return ExactString(HeaderFields(varyingHeaders.lines.sorted { $0.name < $1.name }).storedText)
  }

  /// The maximum number of responses with different varying fields for one key, partition and variant, since each
  /// look-up examines all of them. One more replaces the oldest. RFC 9111 section 4.1 does not define a number.
  static let maxVaryVariants = 32
}

extension HeaderFields {
  /// The fields as `name:value` lines, the format in the index. A line feed in a value, which a server cannot send,
  /// becomes a space.
  var storedText: String {
    String(unsafeUninitializedCapacity: lines.reduce(0) { $0 + $1.byteCount + 2 }) { text in
      var rest = text[...]
      for line in lines {
        var (name, value) = (line.name, line.value)
        name.withUTF8 { rest.write($0) }
        rest.write(UInt8(ascii: ":"))
        let start = rest.startIndex
        value.withUTF8 { rest.write($0) }
        for index in start..<rest.startIndex where text[index] == UInt8(ascii: "\n") { text[index] = UInt8(ascii: " ") }
        rest.write(UInt8(ascii: "\n"))
      }
      return rest.startIndex
    }
  }

  init(storedText text: String) {
    var text = text
    var lines: [HeaderField] = []
    text.withUTF8 { text in
      var rest = UnsafeRawBufferPointer(text)[...]
      while !rest.isEmpty {
        let line = rest.prefix { $0 != UInt8(ascii: "\n") }
        if let colon = line.firstIndex(of: UInt8(ascii: ":")) {
          lines.append(HeaderField(name: .init(rebasing: line[..<colon]), value: .init(rebasing: line[(colon + 1)...])))
        }
        rest = rest[line.endIndex...].dropFirst()
      }
    }
    self.init(lines)
  }
}

/// The row of a partial body, which exists from the creation of its temporary file until the body is complete,
/// discarded or resumed.
public struct PartialRecord: Sendable, Equatable {
  /// The requests that may resume the partial body.
  public struct Identity: Sendable, Hashable {
    public var key: String
    /// As in `StoredResponse`.
    public var partition: String
    /// A digest of all other properties of the request that may change the response.
    public var request: [UInt8]

    public init(key: String, partition: String, request: [UInt8]) {
      self.key = key
      self.partition = partition
      self.request = request
    }
  }

  public var identity: Identity
  public var url: String
  public var response: PartialResponse

  public init(_ response: PartialResponse, identity: Identity, url: String) {
    (self.response, self.identity, self.url) = (response, identity, url)
  }
}
