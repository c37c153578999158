internal import HTTPCaching
internal import HTTPTransport
internal import HTTPTypes
internal import ImageStore

/// The effect of a 304 on the stored responses (RFC 9111 section 4.3.4). Pure.
@LoadingActor
struct Revalidation {
  private let job: Job
  private let policy: CachePolicy

  init(_ job: Job, _ policy: CachePolicy) {
    (self.job, self.policy) = (job, policy)
  }

  /// The responses that a 304 confirms, with the fields that it updates: the revalidation target first, then other
  /// stored responses that the request might have selected. Nil if it does not confirm the target.
  func updated(by summary: TransferSummary) -> [Candidate]? {
    guard let stored = job.candidates, let target = job.revalidationTargetIndex else { return nil }
    let others = stored.indices.filter {
      $0 != target && Vary.matches(stored[$0].response.cached, job.request.headers)
    }
    let asked = [stored[target]] + others.map { stored[$0] }
    let confirmed = Validation.responsesUpdated(by: summary.head.headers, in: asked.map(\.response.cached), asked: 0)
    guard confirmed.first == 0 else { return nil }
    return confirmed.map { index in
      var candidate = asked[index]
      candidate.response.headers = Storing.fields(
        candidate.response.headers, updatedBy: summary.head.headers, receivedAt: summary.responseTime)
      candidate.response.requestTime = summary.requestTime
      (candidate.response.responseTime, candidate.response.validatedAt) = (summary.responseTime, summary.responseTime)
      candidate.response.expiresAt = policy.freshUntil(candidate.response.cached)
      return candidate
    }
  }

  /// The update to apply to the cache. If the updated response must not be stored, or its Vary has changed, so that it
  /// is unknown whom the stored response is for, the result is the stored response with `no-cache`. If only the request
  /// forbids storing, the stored response stays unchanged (RFC 9111 section 5.2.1.5) and the result is nil.
  func toStore(_ updated: Candidate) -> Candidate? {
    let response = updated.response
    let selecting = Vary.selectingFields(of: response.headers, from: job.request.headers)
    guard
      Storing.mayStore(mode: .default, requestHeaders: [:], status: response.status, headers: response.headers),
      selecting.map({ Set($0.lines.map(\.name)) }) == Set(response.varyingHeaders.lines.map(\.name))
    else { return distrusted(updated) }
    return job.request.letsKeep ? updated : nil
  }

  /// The stored response without the update, but with `no-cache`, so that each later use revalidates it.
  private func distrusted(_ updated: Candidate) -> Candidate {
    var stored =
      job.candidates?.first { $0.response.id == updated.response.id && $0.location == updated.location } ?? updated
    if stored.response.expiresAt != .min { stored.response.headers.append("cache-control", "no-cache") }
    stored.response.expiresAt = policy.freshUntil(stored.response.cached)
    return stored
  }
}
