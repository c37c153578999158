internal import HTTPTransport
internal import HTTPTypes
internal import LineRPC

extension Effect {
  /// The effect as a line of a journal. A replay compares effects in this form, after `Sanitizer.clean`.
  var json: JSON {
    switch self {
    case .sent(let line):
      // The session writes only valid JSON.
      return .object(["sent": (try? JSON(parsing: line)) ?? .string(String(decoding: line, as: UTF8.self))])
    case .transfer(let number, let request):
      var object: JSONObject = ["transfer": JSON(number), "url": .string(request.url.requestURL)]
      object.set("headers", JSON(request.headers))
      if let url = request.validatedURL { object.set("validated", .string(url)) }
      if request.bytesKept > 0 { object.set("kept", request.bytesKept) }
      if request.needsFreshConnection { object.set("freshConnection", .bool(true)) }
      return .object(object)
    case .lookUp(let number, let origin):
      return .object(["lookUp": JSON(number), "origin": .string(origin)])
    case .observed(let values):
      return .object(["observed": .array(values.map(JSON.bool))])
    case .exit(let status): return .object(["exit": .integer(Int64(status))])
    }
  }
}

extension JSON {
  /// The values of an `observed` effect; nil for any other line.
  var observedValues: [Bool]? {
    guard case .object(let object) = self, case .array(let elements)? = object["observed"] else { return nil }
    return elements.map { $0 == .bool(true) }
  }
}
