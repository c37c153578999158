internal import HTTPCaching
internal import HTTPTypes
internal import ImageStore
internal import LineRPC
internal import Text

/// A look-up in words. Pure: everything that is read is in the `Lookup`.
struct LookupExplanation {
  struct Step: Equatable {
    var name: String
    var lines: [String]

    init(_ name: String, _ lines: [String]) { (self.name, self.lines) = (name, lines) }
  }

  let lookup: Lookup
  let now: Int

  init(of lookup: Lookup, now: Int) { (self.lookup, self.now) = (lookup, now) }

  /// Whether the load uses a stored response, served or revalidated.
  var usesStoredResponse: Bool { lookup.chosen != nil }

  var steps: [Step] {
    [
      Step("key", key), Step("credentials", credentials), Step("memory", memory), Step("directory", directories),
      Step("stored", lookup.responses.isEmpty ? nothingStored : lookup.responses.map { response($0) }.flatMap { $0 }),
      Step("lease", lease), Step("decision", decision), Step("request", request),
    ]
  }

  private var key: [String] {
    guard let url = lookup.url else { return [lookup.key] }
    return url.hasSameBytes(as: lookup.key) ? [lookup.key, "the same as the URL"] : [lookup.key, "of the URL \(url)"]
  }

  private var credentials: [String] {
    lookup.partition.isEmpty
      ? ["none: the load shares responses with all loads without credentials"]
      : [
        "\(lookup.credentials.joined(separator: ", ")): only responses to the same credentials can be used",
        "partition \(lookup.partition.prefix(8))",
      ]
  }

  private var memory: [String] { ["a running worker looks into its memory first, which cannot be seen from outside"] }

  private var directories: [String] {
    zip(0..., zip(lookup.folders, lookup.inspections)).map { number, pair in
      let (folder, inspection) = pair
      let variants = inspection.stored.count { !$0.response.variant.isEmpty }
      let originals = Quantities.count(inspection.stored.count - variants, "original", "originals")
      let text = "\(folder): \(originals), \(Quantities.count(variants, "variant", "variants"))"
      return number == lookup.found && lookup.folders.count > 1 ? text + " (used)" : text
    }
  }

  private var nothingStored: [String] {
    var lines = ["nothing is stored under this key"]
    let others = lookup.inspections.reduce(0) { $0 + $1.storedElsewhere }
    if others > 0 {
      lines.append("\(Quantities.count(others, "response is", "responses are")) stored for other credentials")
    }
    let partial = lookup.inspections.first?.partialBytes
    if let partial { lines.append("a transfer was interrupted after \(Quantities.size(partial)) and may be resumed") }
    return lines
  }

  private func response(_ response: Lookup.Response) -> [String] {
    let (stored, image) = (response.stored, response.stored.response)
    var head = "\(image.variant.isEmpty ? "original" : "variant \(image.variant)"): status \(image.status)"
    head += ", \(Quantities.size(image.byteCount)) \(image.format ?? image.mediaType)"
    if let width = image.width, let height = image.height { head += ", \(width)x\(height)" }
    head += ", stored \(Quantities.duration(now - image.storedAt)) ago"
    if image.responseTime > image.storedAt {
      head += ", validated \(Quantities.duration(now - image.responseTime)) ago"
    }
    head += ", \(Quantities.count(stored.usage.count, "use", "uses"))"
    let file = "  file \(stored.file)"
    var lines = [head, stored.hasFile ? file : "\(file): missing or of another size, so it is not used"]
    if let refusal = response.refusal {
      lines.append("  not used: \(refusal)")
      return lines
    }
    lines.append("  \(vary(response))")
    if response.differences.isEmpty { lines.append("  \(response.reason)") }
    return lines
  }

  /// The values of the fields may be secret and are left out.
  private func vary(_ response: Lookup.Response) -> String {
    let vary = response.stored.response.headers.values(of: "vary").joined(separator: ", ")
    if vary.isEmpty { return "no Vary: it matches every request for the key" }
    if response.differences.isEmpty { return "Vary: \(vary): the fields are those of the stored request" }
    return "Vary: \(vary): does not match, differs in \(response.differences.joined(separator: ", "))"
  }

  private var lease: [String] {
    guard let holder = lookup.leaseHolder else { return ["no worker is transferring it for a load with these headers"] }
    return holder.isAlive
      ? ["process \(holder.process) is transferring it; another worker would wait for its response"]
      : ["process \(holder.process) was killed while it was transferring it; the next worker takes over"]
  }

  private var decision: [String] {
    var lines = [Self.text(of: lookup.decision)]
    if let chosen = lookup.chosen {
      let image = lookup.responses[chosen].stored.response
      if !lookup.variant.isEmpty, image.variant.isEmpty { lines.append("then makes the variant from the original") }
    } else if !lookup.responses.isEmpty {
      lines.append("no stored response can be used, see above")
    }
    if lookup.mayServeOnError { lines.append("if the server fails, the stored response is served (stale-if-error)") }
    if lookup.mode != .default { lines.append("in the cache mode \(lookup.mode.rawValue)") }
    return lines
  }

  static func text(of decision: CacheDecision) -> String {
    switch decision {
    case .serve(_, isFresh: true): "serve the stored response, which is fresh; send nothing"
    case .serve(_, isFresh: false): "serve the stored response, although it is stale; send nothing"
    case .serveThenRevalidate:
      "serve the stale response at once, and revalidate it for later loads (stale-while-revalidate)"
    case .showThenRevalidate: "show the stored response at once as an event, then revalidate it"
    case .revalidate: "revalidate: a 304 makes the stored response the answer, another response replaces it"
    case .fetch: "transfer the image"
    case .notCached: "fail with notCached: nothing may be sent"
    }
  }

  /// The fields that the request has besides those of the worker, now or when the served response is stale.
  var conditions: HeaderFields {
    switch lookup.decision {
    case .serveThenRevalidate(_, let fields), .showThenRevalidate(_, _, let fields), .revalidate(_, let fields),
      .fetch(let fields):
      fields
    case .serve:
      lookup.chosen.map { Validation.requestFields(for: lookup.responses[$0].stored.response.headers) } ?? [:]
    case .notCached: [:]
    }
  }

  private var request: [String] {
    let lines = conditions.lines.map { "\($0.name): \($0.value)" }
    switch lookup.decision {
    case .notCached: return ["none"]
    case .serve:
      let later = lines.isEmpty ? "later GET, without validators" : "when the response is stale, GET with"
      return ["none now; \(later)"] + lines
    default: return [lines.isEmpty ? "GET without validators" : "GET with"] + lines
    }
  }
}
