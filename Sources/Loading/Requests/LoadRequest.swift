public import HTTPCaching
public import HTTPTypes

/// One image that somebody wants, with every choice made: options of the worker and of the request already merged.
public struct LoadRequest: Sendable {
  public enum Source: Sendable {
    case http(ResourceURL)
    /// A `data:` URL, decoded.
    case inline(bytes: [UInt8], mediaType: String)
  }

  /// Where a downloaded image is kept.
  public struct Places: OptionSet, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }
    public static let memory = Places(rawValue: 1)
    public static let disk = Places(rawValue: 2)
    public static let all: Places = [.memory, .disk]
  }

  /// How the image reaches the host.
  public enum Delivery: String, Sendable, CaseIterable {
    case path, data, none
    /// Decoded, in shared memory.
    case pixels
  }

  public enum Validation: String, Sendable, CaseIterable {
    /// Any content.
    case none
    /// An image by its first bytes, with its size.
    case header
    /// An image all of whose pixels decode.
    case decode
  }

  /// Events that the host asked for.
  public struct Events: OptionSet, Sendable, Hashable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }
    public static let started = Events(rawValue: 1)
    public static let progress = Events(rawValue: 2)
    public static let retrying = Events(rawValue: 4)
    public static let cached = Events(rawValue: 8)
    public static let preview = Events(rawValue: 16)
  }

  // The order keeps it small: very many may be waiting.

  /// The URL as the host gave it (`data:` only up to its comma): what answers and events echo.
  public var url: String
  public var source: Source
  public var key: String
  public var fields: RequestHeaders
  public var group: String?
  public var slot: String?
  /// What a decoder has to do for it, if anything.
  public var processing: DecodePlan?
  /// An absolute path that also gets the image.
  public var saveTo: String?
  /// The SHA-256 that the content must have.
  public var digest: [UInt8]?
  /// No byte for this long ends the transfer.
  public var timeout = Duration.seconds(15)
  /// Largest body in bytes.
  public var maxBytes: Int64 = 100 << 20
  public var retries = 2
  /// The whole load, queueing and retries included; nil for none.
  public var deadline: Duration?
  public var priority = Priority.normal
  public var cacheMode = CacheMode.default
  public var store = Places.all
  public var delivery = Delivery.path
  public var validation = Validation.header
  public var events: Events = []
  public var retriesFailed = false
  public var wantsResponse = false

  public init(url: String, source: Source, key: String, fields: RequestHeaders = RequestHeaders()) {
    self.url = url
    self.source = source
    self.key = key
    self.fields = fields
  }

  /// The headers to send, the worker's own included.
  public var headers: HeaderFields { fields.all }
}

extension LoadRequest {
  /// Whether an answer to it may be kept.
  func mayStore(status: Int, headers answered: HeaderFields) -> Bool {
    Storing.mayStore(mode: cacheMode, requestHeaders: headers, status: status, headers: answered)
  }

  /// Whether it wants its answer kept, if the server lets it.
  var letsKeep: Bool { mayStore(status: 200, headers: [:]) }
}
