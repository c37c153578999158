public import HTTPTypes

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
  /// Where redirects led, if anywhere.
  public var finalURL: String?
  public var response: Response?
  /// False for what was to be kept on disk and could not be: it is too large, or there was no room.
  public var isKept = true
  /// Transfers that it took.
  public var attempts = 1
  public var timing = Timing()

  /// A response's head, as it was received or stored.
  public struct Response: Sendable {
    public var status: Int
    public var headers: HeaderFields
  }

  /// Counted from when the load was accepted.
  public struct Timing: Sendable {
    public var queued = Duration.zero
    public var firstByte = Duration.zero
    public var total = Duration.zero
    public init() {}
  }
}
