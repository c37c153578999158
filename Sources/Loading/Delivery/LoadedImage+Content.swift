internal import HTTPCaching
internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import ImageStore

/// The results of loads, from a stored response and the content that was delivered. The parameters are borrowed, since
/// an initializer would otherwise copy them.
extension LoadedImage {
  /// The result of a load, without its timeline.
  ///
  /// - Parameter now: Unix seconds.
  @LoadingActor
  init(
    _ response: borrowing StoredResponse, _ content: DeliveryPlan.DeliveredContent, for load: ActiveLoad,
    as status: CacheStatus, now: Int
  ) {
    self.init(response, content, for: load.request, as: status, now: now)
    isKept = load.isKept
    attempts = load.attempts
  }

  /// The result of a request.
  init(
    _ response: borrowing StoredResponse, _ content: DeliveryPlan.DeliveredContent, for request: borrowing LoadRequest,
    as status: CacheStatus, now: Int
  ) {
    self.init(
      response, as: status, path: request.delivery == .path ? content.path : nil,
      data: request.delivery == .data ? content.bytes : nil,
      placeholder: request.processing?.wantsPlaceholder == true ? response.metadata?.placeholder : nil,
      head: request.wantsResponse || request.validation == .none ? Response(response, as: status, now: now) : nil)
    if let wanted = request.processing?.facts, !wanted.isEmpty, let known = response.metadata?.facts {
      facts = known.only(wanted)
    }
    if request.wantsDigest { self.content.digest = response.content.digest }
  }

  /// The result of a probe that ended before the body was complete.
  init(_ header: ArrivedHeader, for request: LoadRequest) {
    let head = header.head
    self.init(key: request.key, cache: .miss, content: ImageDescription(header.image))
    if head.finalURL != request.requestURL { finalURL = head.finalURL }
    response = Response(status: head.status, headers: head.headers)
    probe = Probe(received: header.received, length: header.length)
  }
}

extension LoadedImage.Response {
  fileprivate init(_ response: borrowing StoredResponse, as status: CacheStatus, now: Int) {
    let headers =
      status == .miss || status == .revalidated
      ? response.headers : Storing.fieldsToServe(response.cached, now: now)
    self.init(status: response.status, headers: headers)
  }
}
