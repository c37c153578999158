internal import HTTPCaching
internal import HTTPTypes
internal import Text

/// The properties in which two loads must agree to share a transfer: the image, the credentials, and everything that
/// changes what is sent or accepted.
///
/// Delivery, transform, events, priority and `store` differ from load to load and are not part of it. A class whose
/// hash is computed once, because each waiting job is found by its key and keeps it.
final class TransferKey: Sendable {
  /// The cache key.
  let key: ExactString
  /// The credentials of the load, as told apart by `CachePartition.partition`; empty for none.
  let partition: String
  let headers: Headers
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

  /// The request headers that distinguish transfers.
  enum Headers: Sendable, Hashable {
    /// All headers that may matter, until the Vary of a response names those that do.
    case all(HeaderFields)
    /// The headers named by the Vary of a stored response. See VaryCoalescing.
    case selecting(SelectingFields)
    /// All headers that may matter, and the variant, of a lookup-only job. See LateJoinLookup.
    indirect case looking(HeaderFields, for: ExactString)
  }

  enum Revalidation: UInt8, Sendable {
    case whenStale, always, bypassed
    /// The cache is neither read nor written (`noStore`). Apart from `bypassed`, since loads that joined would not be
    /// cached either.
    case unused
  }

  init(
    key: ExactString, partition: String, headers: Headers, revalidation: Revalidation, acceptsAnything: Bool,
    maxBytes: Int64, timeoutMs: Int64, retries: Int
  ) {
    self.key = key
    self.partition = partition
    self.headers = headers
    self.revalidation = revalidation
    self.acceptsAnything = acceptsAnything
    self.maxBytes = maxBytes
    self.timeoutMs = timeoutMs
    self.retries = retries
    // The other properties rarely distinguish two keys.
    var hasher = Hasher()
    hasher.combine(key)
    hasher.combine(partition)
    hasher.combine(headers)
    ownHash = hasher.finalize()
  }

  /// The key shared by loads that differ only in headers that the stored Vary does not name.
  func narrowedByVary(to fields: SelectingFields) -> TransferKey { with(.selecting(fields), revalidation) }

  /// The key of a lookup-only job for late loads.
  func looking(for variant: String) -> TransferKey {
    guard case .all(let fields) = headers else { return self }
    return with(.looking(fields, for: ExactString(variant)), revalidation)
  }

  var isLooking: Bool { if case .looking = headers { true } else { false } }

  /// The key of loads that accept a fresh response.
  var withoutForcedRevalidation: TransferKey { with(headers, .whenStale) }

  private func with(_ headers: Headers, _ revalidation: Revalidation) -> TransferKey {
    TransferKey(
      key: key, partition: partition, headers: headers, revalidation: revalidation,
      acceptsAnything: acceptsAnything, maxBytes: maxBytes, timeoutMs: timeoutMs, retries: retries)
  }
}

extension TransferKey: Hashable {
  static func == (left: TransferKey, right: TransferKey) -> Bool {
    left === right
      || left.ownHash == right.ownHash && left.equalsButForHeaders(right) && left.headers == right.headers
  }

  /// Whether the keys agree in everything except their headers.
  func equalsButForHeaders(_ other: TransferKey) -> Bool {
    key == other.key && partition == other.partition && revalidation == other.revalidation
      && acceptsAnything == other.acceptsAnything && maxBytes == other.maxBytes && timeoutMs == other.timeoutMs
      && retries == other.retries
  }

  func hash(into hasher: inout Hasher) { hasher.combine(ownHash) }
}
