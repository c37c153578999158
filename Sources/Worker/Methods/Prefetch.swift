internal import HTTPTypes
internal import LineRPC
internal import Loading

extension Session {
  /// Loads many images into the cache, with one answer for all of them.
  func prefetch(_ params: Parameters, _ token: RequestToken) throws(RPCError) {
    guard params.has("urls") else { throw params.refusal(of: "urls", "must be given") }
    guard case .array(let elements)? = params.value("urls") else {
      throw params.refusal(of: "urls", "must be an array")
    }
    let priority = try LoadParameters.priority(params) ?? .lowest
    let group = try params.label("group")
    let fields = try LoadParameters.fields(params, defaults)
    let want = try WantParameters.read(params)
    let processing = DecodePlan.asked(transform: try TransformParameters.read(params))
    let events =
      try params.names("events", among: ["progress"] + EventNames.prefetchOnly, mayBeNone: true) ?? options.events
    var requests: [LoadRequest] = []
    var refused: [(url: String, error: LoadError)] = []
    requests.reserveCapacity(elements.count)
    for (index, element) in elements.enumerated() {
      do throws(RPCError) {
        guard var request = try item(element, refusals: &refused) else { continue }
        request.fields = defaults.fields(with: fields.own.replacing(request.fields.own))
        request.delivery = .none
        request.processing = processing
        request.want = want
        request.events = logsLoads ? LogEvent.loggedEvents : []
        requests.append(request)
      } catch {
        throw .invalidParams(member: "urls", "urls[\(index)]: \(error.message)")
      }
    }
    let id = loader.makeID()
    let headers = defaults.fields(with: fields.own)
    let answer = PrefetchAnswer(to: token, by: id, events: Set(events), headers: headers, in: self)
    if logsLoads { log.write(.prefetchAccepted(id, token.id, headers, items: elements.count, priority)) }
    loader.prefetch(requests, refused: refused, as: id, group: group, priority: priority, for: answer)
  }

  /// The request for an item. Nil if its URL is invalid, which is only that item's failure.
  private func item(
    _ element: JSON, refusals: inout [(url: String, error: LoadError)]
  ) throws(RPCError) -> LoadRequest? {
    switch element {
    case .string(let url):
      return request(for: url, key: nil, refusals: &refusals)
    case .object(let object):
      let params = try Parameters(object, known: ["url", "key", "headers"])
      let url = try params.requiredString("url")
      let (key, fields) = (try params.label("key"), try LoadParameters.fields(params, defaults))
      var request = request(for: url, key: key, refusals: &refusals)
      request?.fields = fields
      return request
    default:
      throw .invalidParams(member: "urls", "an item must be a string or an object")
    }
  }

  private func request(
    for url: String, key: String?, refusals: inout [(url: String, error: LoadError)]
  ) -> LoadRequest? {
    do throws(RPCError) {
      return try LoadParameters.request(for: url, key: key, defaults)
    } catch {
      var failure = LoadError(.invalidParams, error.message)
      failure.member = "url"
      let echo = url.asciiJSONLength <= ResourceURL.maximumLength ? url : url.quotable
      refusals.append((DataURL.isDataURL(url) ? DataURL.echo(url) : echo, failure))
      return nil
    }
  }
}
