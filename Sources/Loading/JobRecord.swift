internal import HTTPTransport
internal import HTTPTypes
internal import ImageStore

/// What the cache offers for a load: one stored response, and its bytes where the memory tier has them.
struct Candidate: Sendable {
  var response: StoredResponse
  var bytes: [UInt8]?
  var place: Place
  /// Whether neither it nor what is made of it may be kept.
  var isTransient = false

  enum Place: Sendable, Equatable {
    case memory
    case disk
    /// A read-only directory, by its number.
    case readOnly(Int)
    /// A scratch file, by its path.
    case scratch(String)
  }

  /// What two look-ups found together, each once, less the variants of originals that have been replaced since.
  static func together(_ known: [Candidate], _ found: [Candidate]) -> [Candidate] {
    let ids = Set(known.map(\.response.id))
    let all = known + found.filter { !ids.contains($0.response.id) }
    guard all.contains(where: { !$0.response.variant.isEmpty }) else { return all }
    return all.filter { candidate in
      candidate.response.variant.isEmpty
        || all.allSatisfy { other in
          !other.response.variant.isEmpty || other.response.selection != candidate.response.selection
            || other.response.digest == candidate.response.originalDigest
        }
    }
  }
}

/// What belongs to a job beside its place in the queue.
@LoadingActor
final class JobRecord {
  /// The load that began it: what is sent is the same for all that join.
  let first: Load
  /// What the cache has for the key; nil while it is being looked for.
  var candidates: [Candidate]?
  /// Which of the candidates the transfer asks about, and the fields that ask.
  var basisIndex: Int?
  var conditions = HeaderFields()
  /// The transfer that runs, and what takes in its body.
  var transfer: TransferID?
  var download: Download?
  /// What the attempt before left, while none is running. See Loader+Resuming.
  var beginning: Beginning?
  var startedAt: ContinuousClock.Instant?
  /// Whether the disk has what an earlier load has left, as far as is known.
  var mayTakeUp = false
  /// Whether the scheduler knows that the transfer is being answered.
  var isAnswerNoted = false
  /// Whether a preview of what is there is being made. See Loader+Previews.
  var isPreviewing = false
  /// Whether the transfer goes on though all have left, and where they wanted the result kept. See Loader+Leaving.
  var goesOnAlone = false
  var placesOfLeavers: LoadRequest.Places = []
  /// Whether an attempt ended by a time-out: the connections that are open may be dead.
  var hasTimedOut = false
  /// False once the cache was cleared: the result is delivered, but not kept.
  var mayKeep = true

  init(first: Load) { self.first = first }

  /// The stored response that the transfer asks about.
  var basis: Candidate? { basisIndex.flatMap { candidates?[$0] } }
}
