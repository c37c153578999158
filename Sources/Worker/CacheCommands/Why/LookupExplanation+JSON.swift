internal import HTTPCaching
internal import HTTPTypes
internal import ImageStore
internal import LineRPC

extension CacheDecision {
  var name: String {
    switch self {
    case .serve: "serve"
    case .serveThenRevalidate: "serveThenRevalidate"
    case .showThenRevalidate: "showThenRevalidate"
    case .revalidate: "revalidate"
    case .fetch: "transfer"
    case .notCached: "notCached"
    }
  }
}

extension JSONWriter {
  mutating func members(of explanation: LookupExplanation) {
    let lookup = explanation.lookup
    if let url = lookup.url { member("url", url) }
    member("key", lookup.key)
    if !lookup.partition.isEmpty { member("partition", lookup.partition) }
    member("credentials", .array(lookup.credentials.map { .string($0) }))
    member("directories", .array(lookup.folders.map { .string($0) }))
    if let found = lookup.found { member("directory", lookup.folders[found]) }
    array("stored") { writer in
      for (number, response) in lookup.responses.enumerated() {
        writer.object { $0.members(of: response, isUsed: number == lookup.chosen) }
      }
    }
    member("storedForOthers", lookup.inspections.reduce(0) { $0 + $1.storedElsewhere })
    if let bytes = lookup.inspections.first?.partialBytes { member("partialBytes", bytes) }
    if let holder = lookup.leaseHolder {
      object("lease") { writer in
        writer.member("pid", holder.process)
        writer.member("alive", holder.isAlive)
      }
    }
    member("decision", lookup.decision.name)
    object("request") { writer in
      for line in explanation.conditions.lines {
        writer.key(escaping: line.name)
        writer.value(line.value)
      }
    }
    array("steps") { writer in
      for step in explanation.steps {
        for line in step.lines { writer.value("\(step.name): \(line)") }
      }
    }
  }

  fileprivate mutating func members(of response: Lookup.Response, isUsed: Bool) {
    let (stored, image) = (response.stored, response.stored.response)
    member("used", isUsed)
    if !image.variant.isEmpty { member("variant", image.variant) }
    member("status", image.status)
    member("bytes", image.byteCount)
    if let format = image.format { member("format", format) }
    member("mediaType", image.mediaType)
    if let width = image.width { member("width", width) }
    if let height = image.height { member("height", height) }
    member("storedAt", Timestamp.format(image.storedAt))
    member("validatedAt", Timestamp.format(image.validatedAt))
    member("expiresAt", Timestamp.format(max(image.expiresAt, image.storedAt)))
    if let lastUse = stored.usage.lastUse { member("usedAt", Timestamp.format(lastUse)) }
    member("uses", stored.usage.count)
    member("vary", .array(image.headers.values(of: "vary").map { .string($0) }))
    member("differs", .array(response.differences.map { .string($0) }))
    member("matches", response.isCandidate && response.differences.isEmpty)
    if let refusal = response.refusal { member("refusal", refusal) }
    member("fresh", response.isFresh)
    member("reason", response.reason)
    member("file", stored.file)
    member("hasFile", stored.hasFile)
  }
}
