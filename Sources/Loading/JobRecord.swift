internal import HTTPTransport
internal import HTTPTypes
internal import ImageStore

/// What the cache offers for a load: one stored response, and its bytes where the memory tier has them.
struct Candidate: Sendable {
  var response: StoredResponse
  var bytes: [UInt8]?
  var place: Place

  enum Place: Sendable, Equatable {
    case memory
    case disk
    /// A read-only directory, by its number.
    case readOnly(Int)
  }
}

/// What belongs to a job beside its place in the queue.
@LoadingActor
final class JobRecord {
  /// The load that began it: what is sent is the same for all that join.
  let request: LoadRequest
  let partition: String
  /// What the cache has for the key; nil while it is being looked for.
  var candidates: [Candidate]?
  /// The stored response that the transfer asks about, and the fields that ask.
  var basis: Candidate?
  var conditions = HeaderFields()
  var transfer: TransferID?
  var startedAt: ContinuousClock.Instant?
  /// Whether an attempt ended by a time-out: the connections that are open may be dead.
  var hasTimedOut = false
  /// False once the cache was cleared: the result is delivered, but not kept.
  var mayKeep = true

  init(request: LoadRequest, partition: String) {
    self.request = request
    self.partition = partition
  }
}
