public import HTTPCaching
internal import HTTPTypes
public import ImageStore
internal import Text

/// Which stored responses a load accepts.
extension ActiveLoad {
  /// The candidates that satisfy the request. None if the load bypasses the cache.
  func accepted(of candidates: [Candidate]) -> [Candidate] {
    if bypassesCache { return [] }
    return candidates.allSatisfy(accepts) ? candidates : candidates.filter(accepts)
  }

  func accepts(_ candidate: Candidate) -> Bool { request.accepts(candidate.response) }
}

extension LoadRequest {
  /// Whether the stored response is what the request asks for, or can be decoded into that: it has the digest, if one
  /// is given, and is an image, if it must be one.
  public func accepts(_ response: StoredResponse) -> Bool {
    if validation != .none, response.content.format == nil { return false }
    if let file = cachedFile {
      guard let version = file.version, !response.variant.isEmpty, response.headers["etag"] == version.tag else {
        return false
      }
    }
    if !response.variant.isEmpty, processing?.accepts(variant: response) != true { return false }
    return digest == nil || digest == response.originalDigest
  }

  /// Whether both requests have the same URL. A `data:` URL is stored truncated, so its key, which is its digest, is
  /// compared instead.
  func namesImage(of other: LoadRequest) -> Bool {
    guard url.hasSameBytes(as: other.url) else { return false }
    if case .http = source { return true }
    return key.hasSameBytes(as: other.key)
  }

  /// The origin to which limits and fair queueing apply.
  var origin: Origin {
    switch source {
    case .http(let url): url.origin
    case .inline: Origin(scheme: "data", host: "", port: 0)
    case .file: Origin(scheme: "file", host: "", port: 0)
    }
  }
}

extension CacheDecision {
  /// The decision about a file of the host, which has just been looked at: no rule of HTTP applies.
  ///
  /// - Parameter isStored: whether a variant of the version that the file has is stored.
  init(ofFileIn mode: CacheMode, isStored: Bool) {
    switch mode {
    case .reload, .noStore: self = .fetch(headers: [:])
    case _ where isStored: self = .serve(index: 0, isFresh: true)
    case .onlyIfCached: self = .notCached
    case .default, .noCache, .forceCache, .refresh: self = .fetch(headers: [:])
    }
  }
}

extension StoredResponse {
  /// The response as the caching rules see it.
  public var cached: CachedResponse {
    CachedResponse(
      status: status, headers: headers, selectingFields: varyingHeaders, requestTime: requestTime,
      responseTime: responseTime)
  }
}
