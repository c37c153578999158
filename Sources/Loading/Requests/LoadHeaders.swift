internal import HTTPCaching
public import HTTPTypes

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
