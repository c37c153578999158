internal import HTTPTypes
internal import ImageStore
internal import LineRPC
internal import Loading
internal import Platform
internal import Text

extension Session {
  /// Removes entries from the cache or from the negative cache.
  func clear(_ params: Parameters, _ token: RequestToken) throws(RPCError) {
    let filters = Method.clear.parameters.filter { $0 != "tier" }
    let tiers = try params.choice("tier", Loader.Tiers.self) ?? .all
    let present = filters.filter(params.has)
    if present.count > 1 {
      throw .invalidParams(member: present[1], "at most one of \(filters.joined(separator: ", ")) may be given")
    }
    if present == ["failures"] {
      try params.requireTrue("failures")
      let count = loader.clearFailures()
      log.write(.cleared(token.id, ("failures", nil), nil, removed: count, bytes: 0))
      return answer(token) { $0.members(removed: count, bytes: 0) }
    }
    let filter = try filter(params, present.first)
    loader.clear(filter, in: tiers) { [weak self] result in
      switch result {
      case .success(let (removed, bytes)):
        self?.log.write(
          .cleared(
            token.id, (present.first ?? "all", filter.loggedValue), tiers, removed: removed, bytes: bytes))
        self?.answer(token) { $0.members(removed: removed, bytes: bytes) }
      case .failure(let error): self?.answer(token, WireErrors.wire(error, url: nil))
      }
    }
  }

  private func filter(_ params: Parameters, _ name: String?) throws(RPCError) -> ClearFilter {
    switch name {
    case "url":
      let url = try params.string("url") ?? ""
      return .url(url, key: try LoadParameters.request(for: url, key: nil, defaults).key)
    case "key": return .key(try params.label("key") ?? "")
    case "file": return .key(try FileParameters.request(of: params, key: nil, takesKey: false, defaults).key)
    // `label` refuses an empty prefix, which would match the whole cache.
    case "prefix": return .prefix(try params.label("prefix") ?? "")
    case "host":
      guard let filter = ClearFilter.host(try params.string("host") ?? "") else {
        throw params.refusal(of: "host", ClearFilter.hostRule)
      }
      return filter
    case "olderThanSeconds":
      return .olderThan(seconds: Int(try params.integer("olderThanSeconds", in: 0...(1 << 40)) ?? 0))
    case "expired":
      try params.requireTrue("expired")
      return .expired
    default: return .all
    }
  }

  /// Reports the state of the cache for a URL or key, without a transfer.
  func query(_ params: Parameters, _ token: RequestToken) throws(RPCError) {
    var request =
      switch try params.one(of: ["url", "key", "file"]) {
      case "key": LoadParameters.request(forKey: try params.label("key") ?? "", defaults)
      case "file": try FileParameters.request(of: params, key: nil, takesKey: false, defaults)
      default: try LoadParameters.request(for: params.string("url") ?? "", key: nil, defaults)
      }
    request.processing = .asked(transform: try TransformParameters.read(params))
    loader.query(request) { [weak self] report in
      self?.answer(token) { $0.members(of: report) }
    }
  }

  /// Releases pixel regions that the host no longer uses.
  func release(_ params: Parameters, _ token: RequestToken) throws(RPCError) {
    var path: String?
    if try params.one(of: ["path", "all"]) == "path" {
      path = try params.string("path")
    } else {
      try params.requireTrue("all")
    }
    loader.release(path, areUnused: try params.flag("unused") ?? false) { [weak self] count in
      self?.answer(token) { $0.member("released", count) }
    }
  }

  /// Stores an image that the host supplies.
  func store(_ params: Parameters, _ token: RequestToken) throws(RPCError) {
    guard params.has("url") || params.has("key") else {
      throw .invalidParams(member: "url", "url or key must be given")
    }
    var request: LoadRequest
    if let url = try params.string("url") {
      request = try LoadParameters.request(for: url, key: params.label("key"), defaults)
    } else {
      request = LoadParameters.request(forKey: try params.label("key") ?? "", defaults)
    }
    let content: Loader.Content
    if try params.one(of: ["path", "data"]) == "path" {
      content = .file(HostPlace(.path(try params.absolutePath("path") ?? ""), permitted: defaults.files))
    } else {
      content = .bytes(try params.base64("data") ?? [])
    }
    request.delivery = try params.choice("deliver", of: [.path, LoadRequest.Delivery.none]) ?? .path
    let url = params.has("url") ? request.url : nil
    loader.put(content, as: request) { [weak self] result in
      switch result {
      case .success(let image): self?.answer(token) { $0.members(of: image, url: url) }
      case .failure(let error): self?.answer(token, WireErrors.wire(error, url: url))
      }
    }
  }
}

extension ClearFilter {
  /// The value for the log; nil if there is none, or if it may contain a query.
  fileprivate var loggedValue: JSON? {
    switch self {
    case .url(let url, _): (try? ResourceURL(url)).map { .string($0.redacted) }
    case .host(let host, let port): .string(port.map { "\(host):\($0)" } ?? host)
    case .olderThan(let seconds): .count(seconds)
    case .key, .prefix, .expired, .all, .every: nil
    }
  }

  /// The end of a sentence about a text that is no host.
  static let hostRule = "must be a host name or name:port, without a scheme and a path"

  /// The filter of `name` or `name:port`, with an IPv6 address in brackets; nil for any other text. The other
  /// parts of a URL are refused and not dropped, since the filter may be for a removal.
  static func host(_ text: String) -> ClearFilter? {
    guard !text.utf8.contains(where: { $0 <= 0x20 || "/\\?#@".utf8.contains($0) }), text.last != ":",
      let url = try? ResourceURL("http://\(text)/")
    else { return nil }
    let hasPort = text.last != "]" && text.has(":")
    return .host(url.host, port: hasPort ? url.port : nil)
  }
}

extension JSONWriter {
  fileprivate mutating func members(removed: Int, bytes: Int64) {
    member("removed", removed)
    member("bytes", bytes)
  }

  mutating func members(of report: Loader.CacheReport) {
    member("memory", report.isInMemory)
    member("disk", report.isOnDisk)
    member("fresh", report.isFresh)
    if let path = report.path { member("path", path) }
    if let stored = report.stored {
      member("bytes", stored.content.byteCount)
      member("storedAt", Timestamp.format(stored.storedAt))
    }
    if let expiresAt = report.expiresAt { member("expiresAt", Timestamp.format(expiresAt)) }
    if let usedAt = report.usedAt { member("usedAt", Timestamp.format(usedAt)) }
    if let uses = report.uses { member("uses", uses) }
    member("etag", short: report.stored?.headers["etag"])
    if let directory = report.directory { member("directory", directory) }
    if report.variants > 0 { member("variants", report.variants) }
    list("varying", report.varyingFields)
    list("transforms", report.transforms)
    if let failure = report.failure { member("failure", failure.rawValue) }
    if let until = report.failedUntil { member("failedUntil", Timestamp.format(WallClock.seconds(at: until))) }
    if let process = report.leaseHolder {
      object("lease") { writer in
        writer.member("pid", process)
      }
    }
    member("reason", report.reason)
  }

  /// Writes nothing for an empty list, and as many elements of a long one as fit into a line.
  private mutating func list(_ name: StaticString, _ values: [String]) {
    if values.isEmpty { return }
    var budget = ResponseFields.lineBudget / 2
    key(name)
    beginArray()
    for value in values {
      budget -= value.asciiJSONLength + 3
      guard budget >= 0 else { break }
      self.value(value)
    }
    endArray()
  }
}
