internal import HTTPCaching
internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import ImageStore
internal import LineRPC
internal import Loading
internal import Text

extension Session {
  /// Loads one image.
  func load(_ params: Parameters, _ token: RequestToken) throws(RPCError) {
    let isFile = try params.one(of: ["url", "file"]) == "file"
    let request = try isFile ? FileParameters.request(params, defaults) : LoadParameters.request(params, defaults)
    load(request, token)
  }

  /// Reports the properties of an image, from the cache or from the first bytes of its file.
  func probe(_ params: Parameters, _ token: RequestToken) throws(RPCError) {
    var request = try LoadParameters.request(params, defaults)
    request.isProbe = true
    request.delivery = .none
    request.wantsResponse = true
    request.events = []
    load(request, token)
  }

  /// Answers a load or a probe.
  func load(_ request: LoadRequest, _ token: RequestToken) {
    if let image = loader.serveFromMemory(request) {
      counts.received += 1
      return answer(token, with: image, of: LoadSubject(request))
    }
    let id = loader.makeID()
    let answer = LoadAnswer(to: token, by: id, of: request, in: self)
    if logsLoads {
      log.write(.loadAccepted(LoadSubject(request, as: id), token.id, request.priority))
      var logged = request
      logged.events.formUnion(LogEvent.loggedEvents)
      return loader.submit(logged, as: id, for: answer)
    }
    loader.submit(request, as: id, for: answer)
  }
}

/// The parameters of a load, with the options as defaults.
enum LoadParameters {
  /// - Parameter params: all or some of those of `load` with a URL.
  static func request(_ params: Parameters, _ defaults: LoadDefaults) throws(RPCError) -> LoadRequest {
    var request = try request(for: params.requiredString("url"), key: params.label("key"), defaults)
    try read(params, defaults, into: &request)
    return request
  }

  /// Changes the request in place. Returning a changed copy would retain everything that it refers to.
  static func read(
    _ params: Parameters, _ defaults: LoadDefaults, into request: inout LoadRequest
  ) throws(RPCError) {
    request.fields = try fields(params, defaults)
    request.priority = try priority(params) ?? .normal
    request.group = try params.label("group")
    request.slot = try params.label("slot")
    request.cacheMode = try params.choice("cache") ?? .default
    if let tiers = try tiers(params) { request.store = tiers }
    request.delivery = try params.choice("deliver") ?? .path
    request.saveTo = try saveTo(params)
    request.validation = try params.choice("validate") ?? .header
    if request.delivery == .pixels, request.saveTo != nil {
      throw params.refusal(of: "saveTo", "must not be combined with deliver pixels")
    }
    let transform = try TransformParameters.read(params)
    if request.delivery == .pixels, transform?.frames == .all {
      throw params.refusal(of: "transform.frames", "must not be all with deliver pixels")
    }
    if request.delivery == .pixels, transform?.metadata.isEmpty == false {
      throw params.refusal(of: "transform.metadata", "must not be given with deliver pixels")
    }
    let outputs = try OutputParameters.read(params)
    if outputs != nil { try deliverOnlyOutputs(of: &request, params) }
    request.processing = .asked(
      transform: transform, deliversPixels: request.delivery == .pixels,
      wantsPlaceholder: try params.flag("placeholder") ?? false, checks: request.validation == .decode,
      facts: try facts(params, into: &request), isolation: try isolation(params, request.group),
      outputs: outputs ?? (request.isProcess ? [] : nil))
    if let names = try params.names("events", among: EventNames.ofLoad, mayBeNone: true) {
      request.events = EventNames.events(names)
    }
    if let timeout = try params.milliseconds("timeoutMs") { request.timeout = timeout.limit }
    if let deadline = try params.milliseconds("deadlineMs") { request.deadline = deadline == .zero ? nil : deadline }
    if let retries = try params.integer("retries", in: 0...100) { request.retries = Int(retries) }
    if let maxBytes = try params.integer("maxBytes", in: 0...(1 << 60)) { request.maxBytes = maxBytes }
    request.retriesFailed = try params.flag("retryFailed") ?? false
    request.wantsResponse = try params.flag("response") ?? false
    request.digest = try digest(params)
    if params.has("want") { request.want = try WantParameters.read(params) }
  }

  /// Refuses the parameters that would deliver the image itself.
  private static func deliverOnlyOutputs(of request: inout LoadRequest, _ params: Parameters) throws(RPCError) {
    for name in ["transform", "saveTo"] where params.has(name) {
      throw params.refusal(of: name, "must be within a member of outputs")
    }
    if request.validation == .none {
      throw params.refusal(of: "validate", "must not be none with outputs")
    }
    guard !params.has("deliver") || request.delivery == .none else {
      throw params.refusal(of: "deliver", "must be within a member of outputs, or none")
    }
    request.delivery = .none
  }

  private static func isolation(_ params: Parameters, _ group: String?) throws(RPCError) -> DecodeTask.Isolation? {
    let isolation: DecodeTask.Isolation?? = try params.choice(
      "isolate",
      named: [("image", .image), ("tenant", group.map { .tenant($0) }), ("none", DecodeTask.Isolation.none)])
    guard let isolation else { return nil }
    guard let isolation else { throw params.refusal(of: "isolate", "must not be tenant without group, which names it") }
    return isolation
  }

  /// A request for a URL with the defaults of the options.
  static func request(for url: String, key: String?, _ defaults: LoadDefaults) throws(RPCError) -> LoadRequest {
    if DataURL.isDataURL(url) {
      do {
        let data = try DataURL(url)
        let key = key ?? "sha256-\(SHA256.digest(of: data.body).hexadecimal)"
        return defaults.request(
          url: DataURL.echo(url), source: .inline(bytes: data.body, mediaType: data.mediaType), key: key)
      } catch {
        throw .refusal(of: "url", "must be a valid data: URL: \(error)")
      }
    }
    do throws(ResourceURLError) {
      let resource = try ResourceURL(url)
      return defaults.request(
        url: url, source: .http(resource), key: key ?? resource.cacheKey(ignoring: defaults.ignoredQuery))
    } catch {
      throw .invalidParams(member: "url", "\(error)")
    }
  }

  /// A request for the cached image of a key, independent of its URL.
  static func request(forKey key: String, _ defaults: LoadDefaults) -> LoadRequest {
    defaults.request(url: "", source: .inline(bytes: [], mediaType: ""), key: key)
  }

  static func priority(_ params: Parameters) throws(RPCError) -> Priority? {
    try params.choice("priority", named: Priority.allCases.map { ($0.name, $0) })
  }

  /// The fields of `headers`, which replace the options' fields of the same names.
  static func fields(_ params: Parameters, _ defaults: LoadDefaults) throws(RPCError) -> LoadHeaders {
    guard let object = try params.object("headers") else { return defaults.fields }
    guard object.members.count <= maxHeaders else {
      throw params.refusal(of: "headers", "must not have more than \(maxHeaders) fields")
    }
    var requestFields = HeaderFields()
    for member in object.members {
      guard case .string(let text) = member.value else {
        throw .invalidParams(member: "headers", "headers.\(member.name.quotable) must be a string")
      }
      let name = member.name.lowercased()
      guard requestFields[name] == nil else {
        throw params.refusal(of: "headers", "must not have \(name.quotable) twice (names are case-insensitive)")
      }
      requestFields[name] = text
    }
    if let problem = RequestHeaders.problem(in: requestFields) { throw .invalidParams(member: "headers", problem) }
    return defaults.fields(with: requestFields)
  }

  /// More than any server accepts, and few enough for the quadratic check of the names.
  private static let maxHeaders = 1000

  static func saveTo(_ params: Parameters) throws(RPCError) -> String? {
    guard let path = try params.string("saveTo") else { return nil }
    guard path.hasPrefix("/"), !path.hasSuffix("/"), !path.utf8.contains(0) else {
      throw params.refusal(of: "saveTo", "must be the absolute path of a file")
    }
    return path
  }

  /// Returns the facts that a decoder computes, and notes the one that is already known.
  private static func facts(_ params: Parameters, into request: inout LoadRequest) throws(RPCError) -> FactSet {
    let known = "digest"
    guard let names = try params.names("facts", among: [known] + FactSet.named.map(\.name)) else { return [] }
    request.wantsDigest = names.contains(known)
    return FactSet.named.reduce(into: []) { facts, named in
      if names.contains(named.name) { facts.formUnion(named.fact) }
    }
  }

  private static func digest(_ params: Parameters) throws(RPCError) -> [UInt8]? {
    guard let text = try params.string("digest") else { return nil }
    let encoded = text.dropFirst(7)
    guard text.hasPrefix("sha256-"), let digest = [UInt8](hexadecimal: encoded) ?? Base64.decode(String(encoded)),
      digest.count == 32
    else {
      throw params.refusal(of: "digest", "must be sha256- and the 32 bytes of a SHA-256 in hexadecimal or base64")
    }
    return digest
  }

  private static func tiers(_ params: Parameters) throws(RPCError) -> LoadRequest.Tiers? {
    try params.choice("store", named: [("all", .all), ("memory", .memory), ("disk", .disk), ("none", [])])
  }
}

extension [UInt8] {
  /// Parses two hexadecimal digits per byte, in either case.
  init?(hexadecimal text: Substring) {
    let digits = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
    guard digits.count == text.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
    self = stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
  }
}

/// The properties that an image must have (`want`).
enum WantParameters {
  private static let known = [
    "minWidth", "minHeight", "maxWidth", "maxHeight", "maxPixels", "maxFrames", "maxAspectRatio", "formats",
  ]

  static func read(_ params: Parameters) throws(RPCError) -> WantedImage? {
    guard let params = try params.object("want", known: known) else { return nil }
    return WantedImage(
      minWidth: try count("minWidth", params), minHeight: try count("minHeight", params),
      maxWidth: try count("maxWidth", params), maxHeight: try count("maxHeight", params),
      maxPixels: try count("maxPixels", params, max: 1 << 53 - 1), maxFrames: try count("maxFrames", params),
      maxAspectRatio: try params.number("maxAspectRatio", in: 1...1_000_000),
      formats: try params.names("formats", among: ImageFormat.allCases.map(\.rawValue))?
        .compactMap { ImageFormat(rawValue: $0) })
  }

  private static func count(
    _ name: String, _ params: Parameters, max: Int64 = Int64(Int32.max)
  ) throws(RPCError) -> Int? {
    try params.integer(name, in: 1...max).map(Int.init)
  }
}
