internal import LineRPC
internal import Loading

extension Session {
  /// Loads many images into the cache, with one answer for all of them.
  func prefetch(_ params: JSONObject, _ token: RequestToken) throws(RPCError) {
    let params = try Parameters(params, known: ["urls", "priority", "group", "headers", "transform", "events"])
    guard case .array(let elements)? = params.value("urls") else {
      throw .invalidParams(member: "urls", "urls must be an array")
    }
    let priority = try LoadParameters.priority(params) ?? .lowest
    let group = try params.label("group")
    let fields = try LoadParameters.fields(params, defaults)
    let processing = DecodePlan.asked(transform: try TransformParameters.read(params))
    let events =
      params.has("events")
      ? try LoadParameters.eventNames(params) { name in
        name == "progress" || EventNames.prefetchOnly.contains(name)
          ? nil : "must be one of progress, \(EventNames.prefetchOnly.joined(separator: ", "))"
      } : options.events
    var requests: [LoadRequest] = []
    requests.reserveCapacity(elements.count)
    for (index, element) in elements.enumerated() {
      do throws(RPCError) {
        var request = try item(element)
        request.fields = defaults.fields(with: fields.own.replacing(request.fields.own))
        request.delivery = .none
        request.processing = processing
        request.events = []
        requests.append(request)
      } catch {
        throw .invalidParams(member: "urls", "urls[\(index)]: \(error.message)")
      }
    }
    let id = loader.makeID()
    let answer = PrefetchAnswer(to: token, by: id, events: Set(events), in: self)
    loader.prefetch(requests, as: id, group: group, priority: priority, for: answer)
  }

  private func item(_ element: JSON) throws(RPCError) -> LoadRequest {
    switch element {
    case .string(let url):
      return try LoadParameters.request(for: url, key: nil, defaults)
    case .object(let object):
      let params = try Parameters(object, known: ["url", "key", "headers"])
      guard let url = try params.string("url") else { throw .invalidParams(member: "url", "url must be given") }
      var request = try LoadParameters.request(for: url, key: params.label("key"), defaults)
      request.fields = try LoadParameters.fields(params, defaults)
      return request
    default:
      throw .invalidParams(member: "urls", "an item must be a string or an object")
    }
  }
}
