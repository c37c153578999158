internal import HTTPTypes
internal import ImageStore
internal import LineRPC
internal import Platform

extension CacheCommand {
  static let list = CacheCommand(
    "ls", "list the stored images",
    description: """
      Lists the stored images, one per line: originals, and the variants that transforms have made.
      """,
    options: [],
    examples: [],
    statuses: "0 done, 1 no entry matches",
    run: { arguments, output throws(CommandError) in
      let cache = try OpenCache(arguments.worker, for: .reading)
      let now = time(nil)
      let listing = EntryListing(of: cache.tier, matching: .all, now: now)
      var count = 0
      while let page = try cache.nextPage(of: listing) {
        for entry in page { try output.object { $0.members(of: entry, now: now) } }
        count += page.count
      }
      return count > 0 ? .success : .negative
    })
}

extension JSONWriter {
  mutating func members(of entry: CacheEntry, now: Int) {
    member("key", entry.key)
    if entry.url != entry.key { member("url", entry.url) }
    if !entry.partition.isEmpty { member("partition", entry.partition) }
    if !entry.variant.isEmpty { member("variant", entry.variant) }
    member("bytes", entry.byteCount)
    member("allocated", entry.allocated)
    if let format = entry.format { member("format", format) }
    member("mediaType", entry.mediaType)
    if let width = entry.width { member("width", width) }
    if let height = entry.height { member("height", height) }
    member("storedAt", Timestamp.format(entry.storedAt))
    member("validatedAt", Timestamp.format(entry.validatedAt))
    member("expiresAt", Timestamp.format(entry.expiresAt))
    member("fresh", entry.expiresAt > now)
    if let lastUse = entry.lastUse { member("usedAt", Timestamp.format(lastUse)) }
    member("uses", entry.uses)
    if entry.variants > 0 { member("variants", entry.variants) }
    member("file", entry.file)
  }
}
