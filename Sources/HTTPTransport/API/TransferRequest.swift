public import HTTPTypes

/// One HTTP GET, redirects included.
public struct TransferRequest: Sendable {
  /// `http` or `https`. The fragment is not sent. User information becomes an `authorization` field, if there is none.
  public var url: String
  /// Sent in the order given. `RequestHeaders` says which are refused and which follow a redirect to another origin.
  public var headers: HeaderFields
  /// Where the response that the conditional and range fields speak of came from.
  ///
  /// `if-none-match`, `if-modified-since`, `if-range` and `range` go to this URL only (without fragment and user
  /// information, as in `ResponseHead.finalURL`): sent to another one, a validator could make an old image pass for a
  /// new one. With nil they go to every URL on the way.
  public var validatedURL: String?
  /// How long no byte may arrive. Time in which the consumer has paused the transfer does not count.
  public var idleTimeout: Duration
  /// When the whole transfer must have ended, pauses included; nil is never.
  public var deadline: ContinuousClock.Instant?
  /// The largest body, as delivered.
  public var maxBytes: Int64
  /// How much of the body is there already, of which `range` asks for the rest: with a 206 it counts for `maxBytes`.
  public var bytesKept: Int64 = 0
  /// How many redirects are followed; one more is the error `redirects`.
  public var maxRedirects: Int

  /// Opens a connection rather than use one that is open: for another attempt after a time-out, when all that are open
  /// may be dead.
  public var needsFreshConnection = false

  /// Whether a body's first bytes, up to `longestContentTest` of them, are what is looked for; nil if more are needed to
  /// tell, which they may not be when there are so many.
  ///
  /// It lets a body pass as it is if its Content-Encoding is not true or not known. Without it such a body is the error
  /// `undecodable`.
  public typealias ContentTest = @Sendable (ArraySlice<UInt8>) -> Bool?
  public var isContent: ContentTest?
  public static let longestContentTest = 4096

  public init(
    url: String, headers: HeaderFields = HeaderFields(), validatedURL: String? = nil,
    idleTimeout: Duration = .seconds(15), deadline: ContinuousClock.Instant? = nil, maxBytes: Int64 = .max,
    maxRedirects: Int = 10
  ) {
    self.url = url
    self.headers = headers
    self.validatedURL = validatedURL
    self.idleTimeout = idleTimeout
    self.deadline = deadline
    self.maxBytes = maxBytes
    self.maxRedirects = maxRedirects
  }
}

/// The name of one transfer, never used twice by one transport.
public struct TransferID: Sendable, Hashable {
  public let number: UInt64

  public init(number: UInt64) {
    self.number = number
  }
}
