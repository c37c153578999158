internal import HTTPCaching
public import HTTPTypes

/// The header fields that a load sends, and what follows from them.
///
/// An object, because most loads send those of the options: what follows is worked out once for all of them.
public final class RequestHeaders: Sendable {
  /// All to send, the worker's own included.
  public let all: HeaderFields
  /// Those of `all` that the load has for itself, by which it is another transfer than a load without them.
  public let own: HeaderFields
  /// What else is sent that says who asks, which the transport adds; empty for nothing.
  public let alsoSent: String
  /// The lines that say who asks; empty where none does.
  let credentials: String
  /// Whether the cache has nothing to heed in them.
  let arePlain: Bool

  /// - Parameter alsoSent: a name for the credentials that the transport adds; empty for none.
  public init(_ all: HeaderFields = HeaderFields(), own: HeaderFields = HeaderFields(), alsoSent: String = "") {
    self.all = all
    self.alsoSent = alsoSent
    self.own = own
    credentials = CachePartition.lines(in: all) + (alsoSent.isEmpty ? "" : "also:\(alsoSent)\n")
    arePlain = CachePolicy.isPlain(all)
  }
}
