internal import HTTPCaching
internal import ImageCodec
internal import ImageStore
internal import LineRPC
internal import Loading
internal import Text

extension Session {
  /// Makes files of an image that the host has, and tells facts about it. Nothing is stored.
  func process(_ params: Parameters, _ token: RequestToken) throws(RPCError) {
    processCount += 1
    load(try ProcessParameters.request(params, number: processCount, defaults), token)
  }
}

/// The parameters of `process`.
enum ProcessParameters {
  /// - Parameter number: distinguishes the request from all others of the session.
  static func request(_ params: Parameters, number: Int, _ defaults: LoadDefaults) throws(RPCError) -> LoadRequest {
    var request = defaults.request(url: "", source: try content(params, defaults), key: "process:\(number)")
    request.isProcess = true
    // They are fewer than those of `load`.
    _ = try params.choice("validate", of: [LoadRequest.Validation.header, .decode])
    try LoadParameters.read(params, defaults, into: &request)
    (request.cacheMode, request.store, request.delivery) = (.noStore, [], .none)
    (request.fields, request.events) = (LoadHeaders(), [])
    return request
  }

  private static func content(_ params: Parameters, _ defaults: LoadDefaults) throws(RPCError) -> LoadRequest.Source {
    guard try params.one(of: ["file", "data"]) == "data" else {
      return .file(try FileParameters.place(params, defaults))
    }
    return .inline(bytes: try params.base64("data") ?? [], mediaType: "")
  }
}

/// A file of the host: `{path}`, `{root, path}` or `{fd, pid}`.
enum FileParameters {
  private static let known = ["path", "root", "fd", "pid"]

  static func place(_ params: Parameters, _ defaults: LoadDefaults) throws(RPCError) -> HostPlace {
    guard let file = try params.object("file", known: known) else {
      throw params.refusal(of: "file", "must be given")
    }
    let name: HostPlace.Name
    if try file.one(of: ["path", "fd"]) == "fd" {
      guard !file.has("root") else { throw file.refusal(of: "root", "must not be given with fd") }
      let number = try file.integer("fd", in: 0...Int64(Int32.max)) ?? 0
      let process = try file.integer("pid", in: 1...Int64(Int32.max)).map { Int32($0) } ?? HostPlace.host
      name = .descriptor(Int32(number), process: process)
    } else if file.has("pid") {
      throw file.refusal(of: "pid", "must not be given without fd")
    } else if let root = try file.absolutePath("root") {
      name = .beneath(try relativePath(file), folder: root)
    } else {
      name = .path(try file.absolutePath("path") ?? "")
    }
    return HostPlace(name, permitted: defaults.files)
  }

  /// A load of a file, whose variants are cached.
  static func request(_ params: Parameters, _ defaults: LoadDefaults) throws(RPCError) -> LoadRequest {
    for name in unknownToFiles where params.has(name) {
      throw params.refusal(of: name, "must not be given with file")
    }
    var request = try request(of: params, key: try params.label("key"), defaults)
    try LoadParameters.read(params, defaults, into: &request)
    (request.fields, request.events) = (LoadHeaders(), [])
    guard ![.forceCache, .refresh].contains(request.cacheMode) else {
      throw params.refusal(
        of: "cache", "must be default, no-cache, reload, no-store or only-if-cached with file, which is always checked")
    }
    if request.validation == .none { throw params.refusal(of: "validate", "must not be none with file") }
    guard request.delivery != .path || request.processing?.transform != nil else {
      throw params.refusal(
        of: "transform",
        "must be given with file and deliver path, since the file is not cached; deliver data or outputs need none")
    }
    return request
  }

  /// A request that names a file.
  ///
  /// - Parameters:
  ///   - key: the key in the cache; nil for that of the path.
  ///   - takesKey: whether the method takes a key beside the file.
  static func request(
    of params: Parameters, key: String?, takesKey: Bool = true, _ defaults: LoadDefaults
  ) throws(RPCError) -> LoadRequest {
    let place = try place(params, defaults)
    if case .descriptor = place.name, key == nil {
      throw params.refusal(
        of: "file.fd",
        takesKey
          ? "must not be given without key: a descriptor has no path"
          : "must not be given, as a descriptor has no path; give the key of its loads instead of file")
    }
    var request = defaults.request(url: place.url, source: .file(place), key: key ?? place.url)
    // No field and no credential of the options is for a file.
    request.fields = LoadHeaders()
    return request
  }

  /// The parameters of `load` that are about transfers.
  private static let unknownToFiles = ["headers", "timeoutMs", "retries", "response", "events"]

  private static func relativePath(_ file: Parameters) throws(RPCError) -> String {
    let path = try file.requiredString("path")
    guard !path.isEmpty, !path.hasPrefix("/"), !path.utf8.contains(0) else {
      throw file.refusal(of: "path", "must be a relative path with root")
    }
    return path
  }
}

/// The files that a load makes of its image, by name (`outputs`).
enum OutputParameters {
  private static let known = ["transform", "strip", "maxBytes", "minQuality", "deliver", "saveTo", "mode"]

  /// Nil without the parameter.
  static func read(_ params: Parameters) throws(RPCError) -> [OutputOrder]? {
    guard let object = try params.object("outputs") else { return nil }
    guard 1...RenditionSet.maxCount ~= object.members.count else {
      throw params.refusal(of: "outputs", "must have 1 to \(RenditionSet.maxCount) members")
    }
    var orders: [OutputOrder] = []
    for member in object.members {
      let path = params.path("outputs.\(member.name)")
      guard 1...64 ~= member.name.utf8.count else {
        throw params.refusal(of: "outputs", "must have names of 1 to 64 bytes")
      }
      guard case .object(let content) = member.value else { throw .refusal(of: path, "must be an object") }
      let order = try order(member.name, try Parameters(content, known: known, prefix: path + "."))
      if let target = order.saveTo, let other = orders.first(where: { $0.saveTo?.hasSameBytes(as: target) == true }) {
        throw .refusal(of: "\(path).saveTo", "must not be that of \(other.name.quotable)")
      }
      orders.append(order)
    }
    return orders
  }

  private static func order(_ name: String, _ params: Parameters) throws(RPCError) -> OutputOrder {
    let transform = try TransformParameters.read(params) ?? Transform()
    var rendition = Rendition(transform: transform)
    if try params.flag("strip") == true {
      if params.has("minQuality") { throw params.refusal(of: "minQuality", "must not be given with strip") }
      var kept = Transform()
      kept.metadata = transform.metadata
      guard !params.has("transform") || transform == kept && !kept.metadata.isEmpty else {
        throw params.refusal(of: "transform", "must have metadata and nothing else with strip")
      }
      rendition.isStripped = true
    }
    rendition.maxBytes = try params.integer("maxBytes", in: 1...(1 << 40)).map { Int($0) }
    if let minQuality = try params.integer("minQuality", in: 1...100).map({ Int($0) }) {
      guard rendition.maxBytes != nil else {
        throw params.refusal(of: "minQuality", "must not be given without maxBytes")
      }
      guard minQuality <= transform.quality ?? minQuality else {
        throw params.refusal(of: "minQuality", "must not be more than transform.quality")
      }
      rendition.minQuality = minQuality
    }
    let saveTo = try LoadParameters.saveTo(params)
    let delivery = try params.choice("deliver", of: [.path, .data, LoadRequest.Delivery.none])
    return OutputOrder(
      name: name, rendition: rendition, delivery: delivery ?? (saveTo == nil ? .path : .none), saveTo: saveTo,
      mode: try mode(params, saveTo))
  }

  private static func mode(_ params: Parameters, _ saveTo: String?) throws(RPCError) -> UInt16? {
    guard let text = try params.string("mode") else { return nil }
    guard saveTo != nil else { throw params.refusal(of: "mode", "must not be given without saveTo") }
    guard 3...4 ~= text.utf8.count, text.utf8.first != UInt8(ascii: "+"), let mode = UInt16(text, radix: 8),
      mode <= 0o777
    else {
      throw params.refusal(of: "mode", "must be three octal digits, such as 640")
    }
    return mode
  }
}
