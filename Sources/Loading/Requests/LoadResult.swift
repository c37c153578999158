public import HTTPTypes
public import ImageStore

/// Where an answer came from.
public enum CacheStatus: String, Sendable {
  /// Transferred.
  case miss
  case memory, disk
  /// The server said that what is stored still holds (304).
  case revalidated
  /// Served though not fresh.
  case stale
}

/// What a load came to.
public struct LoadedImage: Sendable {
  public var key: String
  public var cache: CacheStatus
  public var byteCount: Int64
  public var mediaType: String
  /// The format's name, told by the content; nil for what is no image.
  public var format: String?
  public var width: Int?
  public var height: Int?
  public var frames = 1
  /// EXIF orientation, 1 to 8.
  public var orientation = 1
  /// Absolute; complete, never changed, and there for at least 60 s.
  public var path: String?
  public var data: [UInt8]?
  public var pixels: Pixels?
  /// What a transform's result was made of.
  public var source: Source?
  public var placeholder: Placeholder?
  /// Whether decoding has found that the original lacks something, and decodes all the same.
  public var isDamaged = false
  /// Where redirects led, if anywhere.
  public var finalURL: String?
  public var response: Response?
  /// False for what was to be kept on disk and could not be: it is too large, or there was no room.
  public var isKept = true
  /// Transfers that it took.
  public var attempts = 1
  public var timing = Timing()

  public typealias Placeholder = DecodeMetadata.Placeholder

  /// Decoded, in shared memory: rows of 8-bit sRGB, upright, with straight alpha. The host's until it releases them.
  public struct Pixels: Sendable {
    /// Absolute.
    public var path: String
    public var width: Int
    public var height: Int
    /// 1 grey, 3 R G B, 4 R G B A.
    public var channels: Int
    public var byteCount: Int64
    /// Bytes from one row to the next.
    public var stride: Int { width * channels }
  }

  /// An original as it was transferred.
  public struct Source: Sendable {
    public var byteCount: Int64
    public var format: String
    /// As stored, before orientation.
    public var width: Int?
    public var height: Int?
  }

  /// A response's head, as it was received or stored.
  public struct Response: Sendable {
    public var status: Int
    public var headers: HeaderFields
  }

  /// Counted from when the load was accepted, but for `name`, `connect` and `tls`.
  public struct Timing: Sendable {
    public var queued = Duration.zero
    /// How long the request that brought the answer took to find the host's addresses, to connect, and for the TLS
    /// handshake; nil where that was not done for it.
    public var name: Duration?
    public var connect: Duration?
    public var tls: Duration?
    public var firstByte = Duration.zero
    public var total = Duration.zero
    public init() {}
  }
}

extension LoadedImage.Source {
  /// Of an original.
  init(_ response: StoredResponse) {
    self.init(
      byteCount: response.byteCount, format: response.format ?? "", width: response.width, height: response.height)
  }

  init(_ source: DecodeMetadata.Source) {
    self.init(byteCount: source.byteCount, format: source.format, width: source.width, height: source.height)
  }
}
