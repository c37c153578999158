internal import HTTPCaching
internal import ImageCodec
internal import ImageStore
internal import LineRPC
internal import Loading
internal import Platform

extension CacheCommand {
  static let why = CacheCommand(
    name: "why", operand: "URL", summary: "say what a load of the URL would do",
    description: """
      Answers as the method query does, from the directories alone: whether the image is stored, whether
      it is fresh and why, its times, and the decision of a load. Give the command the options of the
      worker and the members of the load that change the look-up. It sends nothing and changes nothing.

      The memory of running workers cannot be seen from outside: a worker looks there first, and it
      remembers recent failures for --failed-ttl. The method query of a running worker tells both.

      The line of JSON has the members key, decision (serve, serveThenRevalidate, showThenRevalidate,
      revalidate, transfer or notCached), and those of the result of query.
      """,
    options: [
      .init("key", "KEY", .optionalText(\.command.key, check: OptionDefinition.notEmpty), "cache key of the load"),
      .init("cache", "MODE", OptionDefinition.choice(\.command.cacheMode), "cache mode of the load [default]"),
      .init(
        "transform", "JSON", .optionalText(\.command.transform, check: { _ in nil }),
        "transform of the load, such as '{\"width\":200}'"),
      .worker("key-ignore-query"), .worker("max-age"), .worker("header"), .worker("user-agent"),
      .worker("cookies", "cookie file of the worker"), .worker("read-only-cache"),
    ],
    examples: [
      ("why https://example.com/a.jpg", "why a load would transfer, revalidate or serve it"),
      ("why --header 'Authorization: Bearer x' https://example.com/a.jpg", "the same for a load with credentials"),
    ],
    statuses: "0 a stored response can be used, 1 none can",
    run: { parsed, output throws(ExitError) in
      let options = try parsed.readingCookies()
      let request = try explainedRequest(options)
      let report = try OpenCache.report(on: request, options)
      if output.isText {
        for (name, value) in lines(of: report, key: request.key) {
          try output.writeText(name.padded(to: 10) + value)
        }
      } else {
        try output.write("") { writer in
          writer.member("key", request.key)
          writer.member("decision", report.decision)
          writer.members(of: report)
        }
      }
      return !["transfer", "notCached"].contains(report.decision)
    })

  /// The load whose look-up is explained.
  private static func explainedRequest(_ options: Options) throws(ExitError) -> LoadRequest {
    let command = options.command
    var request: LoadRequest
    if let url = command.operand {
      request = try options.request(for: url)
      request.key = command.key ?? request.key
    } else if let key = command.key {
      request = LoadParameters.request(forKey: key, LoadDefaults(options))
    } else {
      throw .usage("URL or --key must be given")
    }
    request.cacheMode = command.cacheMode
    if let text = command.transform {
      do throws(RPCError) {
        guard let json = try? JSON(parsing: Array(text.utf8)) else {
          throw RPCError.invalidParams(member: "transform", "transform must be a JSON object")
        }
        let parameters = try Parameters(["transform": json], known: ["transform"])
        request.processing = .asked(transform: try TransformParameters.read(parameters))
      } catch {
        throw .usage("--transform is refused: \(error.message)")
      }
    }
    return request
  }

  private static func lines(of report: Loader.CacheReport, key: String) -> [(String, String)] {
    let now = time(nil)
    var lines = [("key", key), ("decision", report.decision), ("reason", report.reason)]
    if let path = report.path { lines.append(("file", path)) }
    if let stored = report.stored {
      lines.append(("size", Quantity.text(size: stored.content.byteCount)))
      lines.append(("stored", "\(Quantity.text(seconds: now - stored.storedAt)) ago"))
    }
    if let time = report.expiresAt {
      let text = Quantity.text(seconds: abs(now - time))
      lines.append(time <= now ? ("stale", "for \(text)") : ("fresh", "for another \(text)"))
    }
    if let time = report.usedAt { lines.append(("used", "\(Quantity.text(seconds: now - time)) ago")) }
    if !report.varyingFields.isEmpty { lines.append(("varies by", report.varyingFields.joined(separator: ", "))) }
    for transform in report.transforms { lines.append(("variant", transform)) }
    if let process = report.leaseHolder { lines.append(("lease", "process \(process) is transferring it")) }
    return lines
  }
}

extension OpenCache {
  /// Looks up the cache directory of the worker, then its read-only ones.
  fileprivate static func report(on request: LoadRequest, _ options: Options) throws(ExitError) -> Loader.CacheReport {
    let own = try OpenCache(options, for: .reading)
    let executor = own.tier.executor
    var others: [DiskTier] = []
    for directory in options.readOnlyCaches {
      var options = options
      options.cacheDirectory = directory
      others.append(try OpenCache(options, for: .reading, on: executor).tier)
    }
    // The folders for temporary files are not opened.
    let services = DiskServices(
      directory: own.directory, executor: executor, tier: own.tier, readOnlyTiers: others,
      scratch: ScratchFolder(executor: executor), pixels: PixelFolder(executor: executor), now: { time(nil) })
    let maxAge = options.loaderSettings.maxAge
    return try own.perform { _ throws(StoreError) in services.report(on: request, maxAge: maxAge) }
  }
}
