internal import HTTPCaching
internal import ImageCodec
internal import ImageStore
internal import LineRPC
internal import Loading
internal import Platform

extension CacheCommand {
  static let why = CacheCommand(
    "why", operands: "URL", operandCount: 0...1, "explain the look-up of a URL step by step",
    description: """
      Explains what a load of the URL would do now: the cache key, the credentials, the directories, the stored
      responses and whether their Vary matches the request, their freshness, the decision, and the next conditional request. Give
      the command the options of the worker and the members of the load that change the look-up. It sends nothing and
      changes nothing.

      The memory of running workers cannot be seen from outside: a worker looks there first, and it remembers recent
      failures for --failed-ttl. The method query of a running worker tells both.

      The line of JSON has the members url, key, partition and credentials (the names of what it depends on),
      directories, directory (the one that has the responses), stored (as in ls, with used, status, vary, differs,
      matches, refusal, reason and hasFile), storedForOthers, partialBytes, lease (pid and alive), decision (serve,
      serveThenRevalidate, showThenRevalidate, revalidate, transfer or notCached), request (the header fields that the
      request adds), and steps, the lines of the text.
      """,
    options: [
      CommandOption("key", "KEY", .text(check: { $0.isEmpty ? "must not be empty" : nil }), "cache key of the load"),
      CommandOption(
        "cache", "MODE", .choice(CacheMode.allCases.map { $0.rawValue }), "cache mode of the load [default]"),
      CommandOption(
        "transform", "JSON", .text(check: { TransformOption.problem(in: $0) }),
        "transform of the load, such as '{\"width\":200}'"),
      .ofWorker("key-ignore-query"), .ofWorker("max-age"), .ofWorker("header"), .ofWorker("user-agent"),
      .ofWorker("cookies", "cookie file of the worker"), .ofWorker("read-only-cache"),
    ],
    examples: [
      Example(command: "why https://example.com/a.jpg", meaning: "why a load would transfer, revalidate or serve it"),
      Example(
        command: "why --header 'Authorization: Bearer x' https://example.com/a.jpg",
        meaning: "the same for a load with credentials"),
    ],
    statuses: "0 a stored response can be used, 1 none can",
    run: { arguments, output throws(CommandError) in
      let request = try LookupRequest(arguments)
      let now = time(nil)
      let lookup = try Lookup.make(request, in: try OpenCache.all(arguments.worker), now: now)
      let explanation = LookupExplanation(of: lookup, now: now)
      switch output.format {
      case .text:
        for (number, step) in zip(1..., explanation.steps) {
          try output.line("\(String(number).rightAligned(to: 2)). \(step.name.padded(to: 12))\(step.lines.first ?? "")")
          for line in step.lines.dropFirst() { try output.line(String(repeating: " ", count: 16) + line) }
        }
      case .json: try output.object { $0.members(of: explanation) }
      }
      return explanation.usesStoredResponse ? .success : .negative
    })
}

extension OpenCache {
  /// The cache directory of the worker, then its read-only ones, which it looks up in this order.
  fileprivate static func all(_ options: Options) throws(CommandError) -> [OpenCache] {
    var caches = [try OpenCache(options, for: .reading)]
    for directory in options.readOnlyCaches {
      var options = options
      options.cacheDirectory = directory
      caches.append(try OpenCache(options, for: .reading))
    }
    return caches
  }
}

/// The load whose look-up is explained.
struct LookupRequest {
  var request: LoadRequest
  /// The URL as given; nil if only a key is.
  var url: String?
  var maxAge: Int

  init(_ arguments: CommandArguments) throws(CommandError) {
    let options: Options
    do throws(StoreError) {
      options = try arguments.worker.readingCookies()
    } catch {
      throw CommandError(
        status: ExitStatus.noCookieFile, message: "the cookie file cannot be read: \(error.message)")
    }
    url = arguments.operands.first
    guard let name = url ?? arguments.text("key") else { throw .usage("why", "URL or --key must be given") }
    if let url {
      request = try arguments.request(for: url, with: options, of: "why")
      if let key = arguments.text("key") { request.key = key }
    } else {
      request = LoadParameters.request(forKey: name, LoadDefaults(options))
    }
    if let mode = arguments.text("cache").flatMap({ CacheMode(rawValue: $0) }) { request.cacheMode = mode }
    if let text = arguments.text("transform") {
      request.processing = .asked(transform: try? TransformOption.parse(text).get())
    }
    maxAge = options.loaderSettings.maxAge
  }
}

/// A transform as the JSON object that is a member of a load.
private enum TransformOption {
  static func parse(_ text: String) -> Result<Transform?, RPCError> {
    Result { () throws(RPCError) in
      guard let json = try? JSON(parsing: Array(text.utf8)) else {
        throw RPCError.invalidParams(member: "transform", "transform must be a JSON object")
      }
      return try TransformParameters.read(Parameters(["transform": json], known: ["transform"]))
    }
  }

  static func problem(in text: String) -> String? {
    if case .failure(let error) = parse(text) { "is refused: \(error.message)" } else { nil }
  }
}
