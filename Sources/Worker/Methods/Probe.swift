internal import LineRPC
internal import Loading

extension Session {
  /// Reports the properties of an image, from the cache or from the first bytes of its file.
  func probe(_ params: JSONObject, _ token: RequestToken) throws(RPCError) {
    var request = try LoadParameters.request(params, known: Method.probe.parameters, defaults)
    request.isProbe = true
    request.delivery = .none
    request.wantsResponse = true
    request.events = []
    load(request, token)
  }
}
