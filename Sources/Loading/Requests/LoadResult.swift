public import HTTPTypes
public import ImageCodec
internal import ImageStore

/// The origin of an answer, as reported in `cache`.
public enum CacheStatus: String, Sendable {
  /// Transferred.
  case miss
  /// Read from a file of the host.
  case file
  case memory, disk
  /// The server confirmed the stored response (304).
  case revalidated
  /// The stored response was served although it was not fresh.
  case stale
}

/// The result of a load.
public struct LoadedImage: Sendable {
  public var key: String
  public var cache: CacheStatus
  /// With the digest only if it was asked for.
  public var content: ImageDescription
  /// An absolute path to a complete file that never changes and exists for at least 60 s.
  public var path: String?
  public var data: [UInt8]?
  public var pixels: Pixels?
  /// The files that were asked for by name; empty for most loads.
  public var outputs: [Output] = []
  /// The original of a transform's result.
  public var source: ImageDescription?
  public var placeholder: Placeholder?
  /// The facts of the original that were asked for.
  public var facts = ImageFacts()
  /// Notes on the original.
  public var notes: ImageNotes = []
  /// The final URL after redirects, if any.
  public var finalURL: String?
  public var response: Response?
  /// The end of its freshness in Unix seconds, not before it was stored; nil for a probe that received only a part.
  public var expiresAt: Int?
  /// False if the image was to be stored on disk and could not be: it was too large, or there was no space.
  public var isKept = true
  /// The number of attempts.
  public var attempts = 1
  /// For a probe that ended before the body was complete; its byte count is 0 then.
  public var probe: Probe?
  /// The times of the load; nil if the memory fast path answered it at once.
  public var timeline: LoadTimeline?

  /// Decoded pixels in shared memory: rows of 8-bit sRGB, upright, with straight alpha. Owned by the host until it
  /// releases them.
  public struct Pixels: Sendable {
    /// An absolute path.
    public var path: String
    public var width: Int
    public var height: Int
    /// 1 grey, 3 R G B, 4 R G B A.
    public var channels: Int
    public var byteCount: Int64
    /// The bytes from one row to the next.
    public var stride: Int { width * channels }
  }

  /// One of several files made of the image.
  public struct Output: Sendable {
    public var name: String
    public var content: ImageDescription
    /// The quality that a limit of bytes led to.
    public var quality: Int?
    /// As `LoadedImage.path`.
    public var path: String?
    public var data: [UInt8]?

    init(_ order: OutputOrder, _ file: Decoded.File, of original: ImageDescription) {
      (name, quality) = (order.name, file.quality)
      let header =
        order.rendition.isStripped
        ? original.header : ImageHeader(file.format, width: file.width, height: file.height, frames: file.frames)
      content = ImageDescription(header, mediaType: file.format.mediaType, byteCount: Int64(file.bytes))
    }
  }

  /// Whether its line contains bytes of an image.
  public var hasData: Bool { data != nil || outputs.contains { $0.data != nil } }

  /// The body of an image of which a probe has received only a part.
  public struct Probe: Sendable {
    /// The number of bytes that have arrived.
    public var received: Int64
    /// The number of bytes of the whole body, if known.
    public var length: Int64?
  }

  /// The head of a response, as received or stored.
  public struct Response: Sendable {
    public var status: Int
    public var headers: HeaderFields
  }
}
