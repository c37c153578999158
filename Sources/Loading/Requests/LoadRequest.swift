public import HTTPCaching
public import HTTPTypes
public import ImageStore

/// The request for one image, with the options of the worker and of the request merged.
public struct LoadRequest: Sendable {
  public enum Source: Sendable {
    case http(ResourceURL)
    /// A `data:` URL, decoded.
    case inline(bytes: [UInt8], mediaType: String)
    /// A file of the host, which is read.
    case file(HostPlace)
  }

  /// The tiers that store a downloaded image.
  public struct Tiers: OptionSet, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }
    public static let memory = Tiers(rawValue: 1)
    public static let disk = Tiers(rawValue: 2)
    public static let all: Tiers = [.memory, .disk]
  }

  /// The form in which the host gets the image.
  public enum Delivery: String, Sendable, CaseIterable {
    case path, data, none
    /// Decoded pixels in shared memory.
    case pixels
  }

  public enum Validation: String, Sendable, CaseIterable {
    /// Any content is accepted.
    case none
    /// The first bytes must be those of an image, and its header must contain its size.
    case header
    /// All pixels of the image must decode.
    case decode
  }

  /// The events that the host requested.
  public struct Events: OptionSet, Sendable, Hashable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }
    public static let started = Events(rawValue: 1)
    public static let progress = Events(rawValue: 2)
    public static let retrying = Events(rawValue: 4)
    public static let cached = Events(rawValue: 8)
    public static let preview = Events(rawValue: 16)
  }

  // The order of the properties keeps the struct small, since very many may be waiting.

  /// The URL as the host gave it (`data:` only up to its comma), which answers and events echo.
  public var url: String
  public var source: Source
  public var key: String
  public var fields: LoadHeaders
  public var group: String?
  public var slot: String?
  /// The decoder work needed, if any.
  public var processing: DecodePlan?
  /// An absolute path to which the image is also written.
  public var saveTo: String?
  /// The SHA-256 that the content must have.
  public var digest: [UInt8]?
  /// The properties that the image must have; nil for any.
  public var want: WantedImage?
  /// The idle timeout: a transfer without a byte for this long ends.
  public var timeout = Duration.seconds(15)
  /// The maximum size of the body in bytes.
  public var maxBytes: Int64 = 100 << 20
  public var retries = 2
  /// The time limit of the whole load, including queueing and retries; nil for none.
  public var deadline: Duration?
  public var priority = Priority.normal
  public var cacheMode = CacheMode.default
  public var store = Tiers.all
  public var delivery = Delivery.path
  public var validation = Validation.header
  public var events: Events = []
  public var retriesFailed = false
  public var wantsResponse = false
  /// Whether the result contains the digest of its content.
  public var wantsDigest = false
  /// Whether the image is the host's own: it has no URL, and its result tells nothing about the cache.
  public var isProcess = false
  /// Whether the load ends as soon as the header of the image is known. Its `delivery` is `none`.
  public var isProbe = false

  public init(url: String, source: Source, key: String, fields: LoadHeaders = LoadHeaders()) {
    (self.url, self.source, self.key, self.fields) = (url, source, key, fields)
  }

  /// The headers to send, including those of the worker.
  public var headers: HeaderFields { fields.all }
}

extension LoadRequest {
  /// The URL to request, without a fragment; `url` for a `data:` URL.
  var requestURL: String { if case .http(let resource) = source { resource.requestURL } else { url } }

  /// The file of which variants alone are cached; nil for an image of another kind.
  var cachedFile: HostPlace? {
    if !isProcess, case .file(let place) = source { place } else { nil }
  }

  /// Whether variants may be cached although the original is not. Nothing is of a file that may have been written just
  /// now.
  var cachesVariantsAlone: Bool { cacheMode != .noStore && cachedFile?.version?.isSettled == true }

  /// Whether the header of an image may end the load before its body is complete.
  var awaitsHeader: Bool { isProbe || want != nil }

  /// Whether a response to the request may be stored.
  func mayStore(status: Int, headers answered: HeaderFields) -> Bool {
    Storing.mayStore(mode: cacheMode, requestHeaders: headers, status: status, headers: answered)
  }

  /// Whether the request permits storing its response.
  var letsKeep: Bool { mayStore(status: 200, headers: [:]) }
}

/// The header fields that a load sends, and properties derived from them.
///
/// A class, because most loads send those of the options and can share one instance.
public final class LoadHeaders: Sendable {
  /// All fields to send, including those of the worker.
  public let all: HeaderFields
  /// The fields of `all` that are specific to the load. They distinguish its transfer from that of a load without them.
  public let own: HeaderFields
  /// A name for credentials that the transport adds; empty for none.
  public let alsoSent: String
  /// The lines that are credentials; empty for none.
  let credentials: String
  /// Whether no field affects the use of the cache.
  let arePlain: Bool

  /// - Parameter alsoSent: a name for the credentials that the transport adds; empty for none.
  public init(_ all: HeaderFields = HeaderFields(), own: HeaderFields = HeaderFields(), alsoSent: String = "") {
    (self.all, self.own, self.alsoSent) = (all, own, alsoSent)
    credentials = CachePartition.lines(in: all) + (alsoSent.isEmpty ? "" : "also:\(alsoSent)\n")
    arePlain = CachePolicy.isPlain(all)
  }
}
