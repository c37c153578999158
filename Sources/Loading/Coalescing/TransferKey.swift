internal import HTTPCaching
internal import HTTPTypes
internal import Text

/// What makes two loads one transfer: the image, who may see it, and everything that changes what is sent or accepted.
///
/// Delivery, transform, events, priority and `store` are not in it; they are each load's own. It is an object, and
/// hashed once: a waiting job is found by it and keeps it.
final class TransferKey: Sendable {
  /// The cache key.
  let key: ExactString
  /// The credentials the load was given, as `CachePartition.partition` tells them apart; empty for none.
  let partition: String
  let headers: Headers
  /// How the cache is treated; loads that send different Cache-Control fields, or keep what others must not, do not
  /// share a transfer.
  let revalidation: Revalidation
  /// Whether content that is no image is accepted (`validate: none`).
  let acceptsAnything: Bool
  /// Largest body in bytes.
  let maxBytes: Int64
  /// The time-out for no byte arriving, in milliseconds.
  let timeoutMs: Int64
  /// Further attempts after a retryable failure.
  let retries: Int
  private let ownHash: Int

  /// The request headers that make a difference.
  enum Headers: Sendable, Hashable {
    /// Until a response tells by Vary which of them matter, all do that may.
    case all(HeaderFields)
    /// What is stored tells. See VaryCoalescing.
    case selecting(SelectingFields)
    /// All that may, of a job that only looks into the cache, and for which variant. See LateJoinLookup.
    indirect case looking(HeaderFields, for: ExactString)
  }

  enum Revalidation: UInt8, Sendable {
    case whenStale, always, bypassed
    /// Neither looked into nor written to: what joined it would not be kept either.
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
    // The others seldom tell two keys apart.
    var hasher = Hasher()
    hasher.combine(key)
    hasher.combine(partition)
    hasher.combine(headers)
    ownHash = hasher.finalize()
  }

  /// The same, of loads that differ at most in headers that do not count for what is stored.
  func narrowedByVary(to fields: SelectingFields) -> TransferKey { with(.selecting(fields), revalidation) }

  /// The same, of loads that come when the job of their key has looked into the cache.
  func looking(for variant: String) -> TransferKey {
    guard case .all(let fields) = headers else { return self }
    return with(.looking(fields, for: ExactString(variant)), revalidation)
  }

  var isLooking: Bool { if case .looking = headers { true } else { false } }

  /// The same, of loads that take what is fresh.
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

  /// Whether both are equal but for their headers.
  func equalsButForHeaders(_ other: TransferKey) -> Bool {
    key == other.key && partition == other.partition && revalidation == other.revalidation
      && acceptsAnything == other.acceptsAnything && maxBytes == other.maxBytes && timeoutMs == other.timeoutMs
      && retries == other.retries
  }

  func hash(into hasher: inout Hasher) { hasher.combine(ownHash) }
}
