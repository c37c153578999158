internal import HTTPCaching
public import HTTPTypes

/// The header fields that a load sends, and what follows from them.
///
/// An object, because most loads send those of the options: what follows is worked out once for all of them.
public final class RequestFields: Sendable {
  /// All to send, the worker's own included.
  public let all: HeaderFields
  /// Those of `all` that the load has for itself, by which it is another transfer than a load without them.
  public let own: HeaderFields
  /// The lines that say who asks; empty where none does.
  let credentials: String
  /// What else is sent, which the transport adds.
  public let cookies: CookieFile?
  /// Whether the cache has nothing to heed in them.
  let arePlain: Bool

  public init(
    _ all: HeaderFields = HeaderFields(), own: HeaderFields = HeaderFields(), cookies: CookieFile? = nil
  ) {
    self.all = all
    self.cookies = cookies
    self.own = own
    credentials = Credentials.lines(in: all)
    arePlain = CachePolicy.isPlain(all)
  }
}
