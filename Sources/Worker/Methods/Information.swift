internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import ImageStore
internal import LineRPC
internal import Loading
internal import Platform
internal import Text
internal import Threads

extension Session {
  /// Describes the worker and its capabilities, and applies the given options. Only a decoder knows the formats, and
  /// its start takes longer than that of the worker.
  func initialize(_ params: Parameters, _ token: RequestToken) throws(RPCError) {
    if let version = params.value("protocolVersion"), version != .integer(1) {
      var error = params.refusal(of: "protocolVersion", "must be the integer 1")
      error.details.set("supported", .array([.integer(1)]))
      throw error
    }
    let client = try params.object("client", known: ["name", "version"])
    let (name, version) = try (client?.string("name"), client?.string("version"))
    let wantsFormats = try params.flag("formats") ?? false
    var changed: [String] = []
    if let object = try params.object("options") {
      apply(try options.changed(by: object, tierIsOn: storage.tier != nil))
      changed = object.members.map(\.name)
    }
    log.write(.hostInitialized(token.id, client: name, version: version, changed: changed))
    guard wantsFormats else { return answerInitialize(token, nil) }
    loader.decoder.formats { formats in
      LoadingActor.run { [weak self] in self?.answerInitialize(token, formats) }
    }
  }

  private func answerInitialize(_ token: RequestToken, _ formats: CodecFormats?) {
    let (options, directory, sandbox) = (options, storage.directory, decoders.statistics.sandbox)
    answer(token) { writer in
      writer.object("server") { writer in
        writer.member("name", constant: "imageworker")
        writer.member("version", Version.current)
      }
      writer.member("protocolVersion", 1)
      writer.member("methods", .array(Method.allCases.map { .string($0.rawValue) }))
      writer.member("events", .array(EventNames.all.map(JSON.string)))
      if let formats {
        let names = { (formats: [ImageFormat]) in JSON.array(formats.map { .string($0.rawValue) }) }
        var libraries = JSONObject()
        for library in formats.libraries {
          let parts = library.split(separator: " ", maxSplits: 1)
          if parts.count == 2 { libraries.set(String(parts[0]), .string(String(parts[1]))) }
        }
        writer.member(
          "formats",
          .object([
            "decode": names(formats.decode), "encode": names(formats.encode),
            "libraries": .object(libraries),
          ]))
        writer.member("sandbox", .array(sandbox.map(JSON.string)))
      }
      writer.object("limits") { writer in
        writer.member("maxLine", options.maxLine)
        writer.member("maxURL", ResourceURL.maximumLength)
        writer.member("maxConcurrent", options.loaderSettings.limits.maxWindow)
        writer.member("maxPerHost", options.loaderSettings.limits.maxOriginWindow)
        writer.member("maxQueued", options.maxQueued)
        writer.member("maxBytes", options.maxBytes)
        writer.member("maxPixels", options.maxPixels)
      }
      writer.object("cache") { writer in
        writer.member("directory", directory)
        writer.member("namespace", options.cacheNamespace)
      }
    }
  }

  /// Changes options for everything that starts from now on.
  func configure(_ params: JSONObject, _ token: RequestToken) throws(RPCError) {
    apply(try options.changed(by: params, tierIsOn: storage.tier != nil))
    if !params.isEmpty { log.write(.optionsChanged(token.id, params.members.map(\.name))) }
    let options = options
    answer(token) { writer in
      for definition in OptionDefinition.all where definition.isRuntime { definition.write(options, to: &writer) }
    }
  }

  /// Reports counters and the current state.
  func stats(_ token: RequestToken) {
    collectFigures { [weak self] figures in
      self?.answer(token) { $0.members(of: figures.loader, figures.resolver, figures.requests, uptime: figures.uptime) }
    }
  }

  /// Returns the metrics as OpenMetrics. The text is made on the disk thread.
  func metrics(_ token: RequestToken) {
    collectFigures { [weak self, storage] figures in
      storage.executor.run {
        let text = MetricsText.openMetrics.text(of: figures.families(.current()))
        LoadingActor.run {
          self?.answer(token) { writer in
            writer.member("contentType", MetricsText.contentType)
            writer.member("text", text)
          }
        }
      }
    }
  }
}

extension Options {
  static let runtimeMembers = OptionDefinition.all.filter(\.isRuntime).map(\.member)

  /// The options after the changes that `configure` or `initialize` requests.
  func changed(by object: JSONObject, tierIsOn: Bool) throws(RPCError) -> Options {
    var changed = self
    for member in object.members {
      guard let definition = OptionDefinition.all.first(where: { $0.member == member.name }) else {
        let hint = hint(for: member.name, among: Self.runtimeMembers)
        throw .invalidParams(member: member.name, "unknown option \(member.name.quotable)\(hint)")
      }
      guard definition.isRuntime else {
        throw .refusal(of: member.name, "can only be set on the command line")
      }
      if let problem = definition.set(member.value, in: &changed) {
        throw .refusal(of: member.name, problem)
      }
    }
    guard (changed.diskLimit > 0) == tierIsOn else {
      throw .refusal(of: "diskLimit", "cannot turn the disk tier on or off while the worker runs")
    }
    if let problem = changed.transportConfiguration.problem() {
      let member = object.members.last { ["network", "proxy"].contains($0.name) }?.name ?? "network"
      throw .invalidParams(member: member, problem)
    }
    return changed
  }
}

extension JSONWriter {
  fileprivate mutating func members(
    of statistics: Loader.Statistics, _ resolver: ResolverStatistics, _ requests: Session.RequestCounts,
    uptime: Duration
  ) {
    member("uptimeMs", uptime.milliseconds)
    object("requests") { writer in
      writer.member("received", requests.received)
      writer.member("succeeded", requests.succeeded)
      writer.member("failed", requests.failed)
      writer.member("cancelled", requests.cancelled)
    }
    object("queue") { writer in
      writer.object("waiting") { writer in
        for priority in Priority.allCases {
          writer.key(escaping: priority.name)
          writer.value(statistics.waiting[priority])
        }
      }
      writer.member("active", statistics.active)
      writer.member("window", statistics.window)
      writer.member("paused", statistics.isPaused)
    }
    array("origins") { writer in
      for origin in statistics.origins { writer.value(of: origin) }
    }
    object("resolver") { writer in
      writer.member("kind", resolver.kind.rawValue)
      guard resolver.kind == .cAres else { return }
      writer.member("names", resolver.names)
      writer.member("waiting", resolver.waiting)
      writer.member("inFlight", resolver.inFlight)
      writer.member("window", resolver.window)
      writer.member("lookups", resolver.lookUps)
      writer.member("queries", resolver.queries)
      writer.member("unanswered", resolver.unanswered)
    }
    object("transfers") { writer in
      writer.member("started", statistics.transfers.started)
      writer.member("succeeded", statistics.transfers.succeeded)
      writer.member("failed", statistics.transfers.failed)
      writer.member("bytes", statistics.transfers.bytes)
    }
    object("cache") { writer in
      writer.member("memoryHits", statistics.metrics[.memory].count)
      writer.member("diskHits", statistics.metrics[.disk].count)
      writer.member("revalidated", statistics.metrics[.revalidated].count)
      writer.member("stale", statistics.metrics[.stale].count)
      writer.member("misses", statistics.metrics[.miss].count)
      writer.member("bytesSaved", statistics.metrics.bytesSaved)
    }
    array("failures") { writer in
      for entry in statistics.failures { writer.value(of: entry) }
    }
    object("memory") { writer in
      writer.member("entries", statistics.memory.entries)
      writer.member("bytes", statistics.memory.bytes)
      writer.member("limit", statistics.memory.limit)
      writer.member("evicted", statistics.memory.evicted)
    }
    object("disk") { writer in
      writer.member("entries", statistics.disk.entries)
      writer.member("bytes", statistics.disk.bytes)
      writer.member("limit", statistics.disk.limit)
      writer.member("evicted", statistics.disk.evicted.total)
      writer.object("evictedFor") { writer in
        writer.member("limit", statistics.disk.evicted.limit)
        writer.member("freeSpace", statistics.disk.evicted.freeSpace)
        writer.member("diskFull", statistics.disk.evicted.diskFull)
      }
    }
    object("decoders") { writer in
      writer.member("running", statistics.decoders.running)
      writer.member("decoded", statistics.decoders.decoded)
      writer.member("failed", statistics.decoders.failed)
      writer.member("crashed", statistics.decoders.crashed)
      writer.member("timedOut", statistics.decoders.timedOut)
      writer.member("sandbox", .array(statistics.decoders.sandbox.map(JSON.string)))
    }
    object("pixels") { writer in
      writer.member("regions", statistics.pixels.regions)
      writer.member("bytes", statistics.pixels.bytes)
    }
    member("rssBytes", residentBytes())
  }

  private mutating func value(of entry: FailureTable.Entry) {
    beginObject()
    member("kind", entry.kind.rawValue)
    member("count", entry.count)
    object("latest") { writer in
      writer.member("url", entry.latest.url)
      writer.member("message", entry.latest.message)
      if let status = entry.latest.status { writer.member("status", status) }
      if let phase = entry.latest.phase { writer.member("phase", phase.rawValue) }
      writer.member("time", Timestamp.format(entry.latest.time))
    }
    if let hint = ProtocolDocument.hint(for: entry.kind) { member("hint", hint) }
    endObject()
  }

  private mutating func value(of origin: OriginState) {
    beginObject()
    member("origin", origin.origin.description)
    member("active", origin.active)
    member("waiting", origin.waiting)
    member("window", origin.window)
    member("health", origin.health.rawValue)
    if let until = origin.heldUntil { member("heldUntil", Timestamp.format(WallClock.seconds(at: until))) }
    if let reason = origin.reason { member("reason", reason.rawValue) }
    endObject()
  }
}
