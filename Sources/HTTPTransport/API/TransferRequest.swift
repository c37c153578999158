public import HTTPTypes

/// One HTTP GET, redirects included.
public struct TransferRequest: Sendable {
  /// User information becomes an `authorization` field if there is none.
  public var url: ResourceURL
  /// Sent in this order. `RequestHeaders` defines which fields are refused and which follow a redirect to another
  /// origin.
  public var headers: HeaderFields
  /// The URL of the stored response to which the conditional and range fields refer.
  ///
  /// `if-none-match`, `if-modified-since`, `if-range` and `range` are sent to this URL only (without fragment and user
  /// information, as in `ResponseHead.finalURL`). A validator sent to another URL could make an old image pass for a
  /// new one. If nil, the fields are sent to every URL of the redirect chain.
  public var validatedURL: String?
  /// Longest time without a byte. Time in which the consumer has paused the transfer does not count.
  public var idleTimeout: Duration
  /// Largest body, in delivered bytes.
  public var maxBytes: Int64
  /// Bytes of the body that are already stored, if `range` asks for the rest. They count towards `maxBytes` of a 206.
  public var bytesKept: Int64 = 0
  /// Largest number of redirects to follow; one more fails with `redirects`.
  public var maxRedirects: Int

  /// Opens a connection instead of reusing one: for a retry after a timeout, when all open connections may be dead.
  public var needsFreshConnection = false

  /// Tests whether the first bytes of a body are the wanted content. Returns nil to ask for more bytes, but never if it
  /// has `maxContentTestBytes` of them.
  ///
  /// A body that passes is delivered unchanged even if its Content-Encoding is untrue or unknown. Another body with an
  /// unknown Content-Encoding fails with `undecodable`.
  public typealias ContentTest = @Sendable (ArraySlice<UInt8>) -> Bool?
  public var isContent: ContentTest = { _ in false }
  public static let maxContentTestBytes = 16_384

  public init(
    url: ResourceURL, headers: HeaderFields = HeaderFields(), validatedURL: String? = nil,
    idleTimeout: Duration = .seconds(15), maxBytes: Int64 = .max,
    maxRedirects: Int = 10
  ) {
    self.url = url
    self.headers = headers
    self.validatedURL = validatedURL
    self.idleTimeout = idleTimeout
    self.maxBytes = maxBytes
    self.maxRedirects = maxRedirects
  }
}

/// Identifies a transfer; never reused within one transport.
public struct TransferID: Sendable, Hashable {
  public let number: UInt64

  public init(number: UInt64) { self.number = number }
}
