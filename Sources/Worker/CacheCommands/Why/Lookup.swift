internal import HTTPCaching
internal import ImageStore
internal import Loading
internal import Text

/// The responses that a load would find on disk, and the decision that the worker would make.
struct Lookup: Sendable {
  struct Response: Sendable {
    var stored: DiskTier.KeyInspection.Stored
    /// The names of the fields by which its Vary excludes the request.
    var differences: [String]
    /// Whether the load accepts it at all, and if not, why.
    var refusal: String?
    var isFresh: Bool
    /// As in `query`: why it is fresh or stale.
    var reason: String

    var isCandidate: Bool { refusal == nil && stored.hasFile }
  }

  var url: String?
  var key: String
  var partition: String
  var credentials: [String]
  var mode: CacheMode
  var variant: String
  /// The folders of the namespaces, in the order in which they are looked up.
  var folders: [String]
  /// The number of the folder that has the responses; nil if none has any.
  var found: Int?
  var responses: [Response]
  var inspections: [DiskTier.KeyInspection]
  var decision: CacheDecision
  /// The number of the response that the decision uses.
  var chosen: Int?
  /// Whether the chosen response may be the answer if the server fails (stale-if-error).
  var mayServeOnError: Bool
  var leaseHolder: DiskTier.LeaseHolder?

  /// Looks up the directories in the order in which a worker does.
  static func make(_ lookup: LookupRequest, in caches: [OpenCache], now: Int) throws(CommandError) -> Lookup {
    let request = lookup.request
    let (key, partition, variant) = (request.key, request.partition, request.variant)
    var inspections: [DiskTier.KeyInspection] = []
    for cache in caches {
      inspections.append(
        try cache.perform { tier throws(StoreError) in try tier.inspect(key: key, partition: partition) })
    }
    // As `DiskServices.candidates`: the first directory with an original or the variant.
    let found = inspections.firstIndex { inspection in
      inspection.stored.contains { $0.response.variant.isEmpty || $0.response.variant == variant }
    }
    let policy = CachePolicy(maxAge: lookup.maxAge)
    let stored = found.map { inspections[$0].stored } ?? []
    let responses = stored.map { one in
      Response(
        stored: one, differences: Vary.differences(one.response.cached, request.headers),
        refusal: refusal(of: one.response, request, among: stored.map { $0.response }),
        isFresh: policy.isFresh(one.response.cached, at: now), reason: policy.explain(one.response.cached, now: now))
    }
    // A variant comes before its original.
    let usable = responses.indices.filter { responses[$0].isCandidate }
    let candidates = usable.filter { responses[$0].stored.response.variant == variant }
    let originals = usable.filter { !candidates.contains($0) }
    let cached = (candidates + originals).map { responses[$0].stored.response.cached }
    let decision = policy.decide(
      mode: request.cacheMode, requestHeaders: request.headers, stored: cached, now: now)
    let chosen = decision.index.map { (candidates + originals)[$0] }
    let mayServeOnError = chosen.map { number in
      policy.mayServeOnError(
        responses[number].stored.response.cached, mode: request.cacheMode, requestHeaders: request.headers,
        failure: nil, now: now)
    }
    let hash = request.sharedHash(in: partition)
    let leaseHolder = try caches[0].perform { tier throws(StoreError) in tier.leaseHolder(of: hash) }
    return Lookup(
      url: lookup.url, key: key, partition: partition, credentials: request.credentials, mode: request.cacheMode,
      variant: variant, folders: caches.map { "\($0.directory)/\($0.namespace)" }, found: found, responses: responses,
      inspections: inspections, decision: decision, chosen: chosen, mayServeOnError: mayServeOnError ?? false,
      leaseHolder: leaseHolder)
  }

  /// Why a load cannot use a stored response, whatever its freshness; nil if it can.
  private static func refusal(
    of response: StoredResponse, _ request: LoadRequest, among all: [StoredResponse]
  ) -> String? {
    if !response.variant.isEmpty, response.variant != request.variant { return "another transform" }
    let isOutdated =
      !response.variant.isEmpty
      && all.contains {
        $0.variant.isEmpty && $0.varyKey == response.varyKey && $0.digest != response.originalDigest
      }
    if isOutdated { return "its original has been replaced" }
    return request.accepts(response) ? nil : "not an image (a load with validate none accepts it)"
  }
}

extension CacheDecision {
  /// The number of the stored response that the decision is about; nil if it is about none.
  var index: Int? {
    switch self {
    case .serve(let index, _), .serveThenRevalidate(let index, _), .showThenRevalidate(let index, _, _),
      .revalidate(let index, _):
      index
    case .fetch, .notCached: nil
    }
  }
}
