internal import HTTPCaching
internal import HTTPTypes
internal import Text

/// The properties in which two loads must agree to share a transfer: the image, the request that is sent, and what is
/// accepted.
///
/// Delivery, transform, events, priority and `store` differ from load to load and are not part of it. A class whose
/// hash is computed once, because each waiting job is found by its key and keeps it.
final class TransferKey: Sendable {
  /// The cache key.
  let key: ExactString
  let request: RequestIdentity
  /// How the cache is used. Loads that send different Cache-Control fields, or store what others must not, do not share
  /// a transfer.
  let revalidation: Revalidation
  /// Whether content that is not an image is accepted (`validate: none`).
  let acceptsAnything: Bool
  /// The maximum size of the body in bytes.
  let maxBytes: Int64
  /// The idle timeout in milliseconds.
  let timeoutMs: Int64
  /// The number of further attempts after retryable failures.
  let retries: Int
  private let ownHash: Int

  enum Revalidation: UInt8, Sendable {
    case whenStale, always, bypassed
    /// The cache is neither read nor written (`noStore`). Apart from `bypassed`, since loads that joined would not be
    /// cached either.
    case unused
  }

  init(
    key: ExactString, request: RequestIdentity, revalidation: Revalidation, acceptsAnything: Bool,
    maxBytes: Int64, timeoutMs: Int64, retries: Int
  ) {
    (self.key, self.request, self.revalidation) = (key, request, revalidation)
    (self.acceptsAnything, self.maxBytes) = (acceptsAnything, maxBytes)
    (self.timeoutMs, self.retries) = (timeoutMs, retries)
    // The other properties rarely distinguish two keys.
    var hasher = Hasher()
    hasher.combine(key)
    hasher.combine(request)
    ownHash = hasher.finalize()
  }

  /// The key of a job that no other load joins, and that transfers nothing.
  convenience init(ofOnly load: LoadID) {
    self.init(
      key: ExactString(String(load.serial)),
      request: RequestIdentity(url: ExactString(""), partition: "", headers: [:]), revalidation: .unused,
      acceptsAnything: false, maxBytes: 0, timeoutMs: 0, retries: 0)
  }

  /// The key of loads that accept a fresh response.
  var withoutForcedRevalidation: TransferKey {
    TransferKey(
      key: key, request: request, revalidation: .whenStale, acceptsAnything: acceptsAnything, maxBytes: maxBytes,
      timeoutMs: timeoutMs, retries: retries)
  }
}

/// The request that is sent: the URL, the credentials and all fields by which a server may select a response. Loads
/// share a failure only if they send the same request.
struct RequestIdentity: Hashable, Sendable {
  /// The URL that is requested; the cache key of a `data:` URL.
  let url: ExactString
  /// The credentials, as told apart by `CachePartition.partition`; empty for none.
  let partition: String
  /// The request headers that may matter, in a canonical order.
  let headers: HeaderFields
}

extension TransferKey: Hashable {
  static func == (left: TransferKey, right: TransferKey) -> Bool {
    left === right
      || left.ownHash == right.ownHash && left.key == right.key && left.request == right.request
        && left.revalidation == right.revalidation
        && left.acceptsAnything == right.acceptsAnything && left.maxBytes == right.maxBytes
        && left.timeoutMs == right.timeoutMs && left.retries == right.retries
  }

  func hash(into hasher: inout Hasher) { hasher.combine(ownHash) }
}
