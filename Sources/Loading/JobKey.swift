internal import HTTPTypes

/// What makes two loads one transfer: the image, who may see it, and everything that changes what is sent or accepted.
///
/// Delivery, transform, events, priority and `store` are not in it; they are each load's own.
struct JobKey: Hashable, Sendable {
  /// The cache key.
  var key: String
  /// The credentials the load was given, as `Credentials.partition` tells them apart; empty for none.
  var partition: String
  /// The load's own request headers. Until a response tells by Vary which of them matter, all of them do.
  var headers: HeaderFields
  /// How the cache is treated; loads that send different Cache-Control fields, or keep what others must not, do not share
  /// a transfer.
  var revalidation: Revalidation
  /// Whether content that is no image is accepted (`validate: none`).
  var acceptsAnything: Bool
  /// Largest body in bytes.
  var maxBytes: Int64
  /// The time-out for no byte arriving, in milliseconds.
  var timeoutMs: Int64
  /// Further attempts after a retryable failure.
  var retries: Int

  enum Revalidation: UInt8, Sendable {
    case whenStale, always, bypassed
    /// Neither looked into nor written to: what joined it would not be kept either.
    case unused
  }
}
