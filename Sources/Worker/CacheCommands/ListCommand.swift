internal import HTTPTypes
internal import ImageStore
internal import LineRPC
internal import Platform
internal import Text

extension CacheCommand {
  static let list = CacheCommand(
    name: "ls", summary: "list the stored images",
    description: """
      Lists the stored images, one per line: originals, and the variants that transforms have made of
      them. An image must match all filters that are given. Workers may store and evict images meanwhile:
      an image that is stored all the time is listed exactly once.

      Columns: SIZE of the image; AGE since its body arrived; FRESHNESS, how long it stays fresh or has
      been stale by the --max-age of the worker that stored it; USES, the number of deliveries since it
      was stored; LAST USE; FORMAT; the number of VARIANTS of an original; KEY, followed by the transform
      of a variant and by the URL if it differs from the key. Images for requests with credentials are
      marked with the beginning of a digest.

      Members of a line of JSON: key, url, partition (a digest of the credentials, if any), variant,
      bytes, allocated, format, mediaType, width, height, frames and orientation (if not 1), storedAt,
      validatedAt, expiresAt, fresh, usedAt, uses, variants, and file (below the namespace's folder).
      """,
    options: [
      .init(
        "sort", "ORDER", OptionDefinition.choice(\.command.sort),
        "key (by bytes), size (largest first), age (oldest first), used (last used first), uses (most used first) [key]"
      ),
      .init("reverse", "", .flag(\.command.reverse), "reverse the order"),
      .limit("list at most this many"),
    ] + OptionDefinition.filters,
    examples: [
      ("ls --sort size --limit 20", "the 20 largest images"),
      ("ls --host img.example.com --expired", "images of a host that are stale"),
      ("ls --json | jq -r .url", "all URLs"),
    ],
    statuses: "0 done, 1 no image matches",
    run: { options, output throws(ExitError) in
      let filter = try options.filter() ?? .all
      let (order, isReversed) = (options.command.sort, options.command.reverse)
      let cache = try OpenCache(options, for: .reading)
      let now = time(nil)
      let listing = EntryListing(of: cache.tier, matching: filter, in: order, reversed: isReversed, now: now)
      var rest = options.command.limit > 0 ? options.command.limit : .max
      var sum = EntrySum()
      while rest > 0, let page = try cache.nextPage(of: listing) {
        for entry in page.prefix(rest) {
          if sum.entries == 0 { try output.writeText(table.header) }
          sum += entry.sum
          try output.write(table.row(cells(of: entry, now: now))) { $0.members(of: entry, now: now) }
        }
        rest -= min(rest, page.count)
      }
      try output.writeText(sum.text)
      return sum.entries > 0
    })

  private static let table = TextTable(columns: [
    ("SIZE", 5), ("AGE", 6), ("FRESHNESS", -14), ("USES", 5), ("LAST USE", 8), ("FORMAT", -6), ("VARIANTS", 8),
    ("KEY", 0),
  ])

  private static func cells(of entry: CacheEntry, now: Int) -> [String] {
    let freshness =
      entry.expiresAt > now
      ? "fresh for \(Quantity.text(seconds: entry.expiresAt - now))"
      : "stale for \(Quantity.text(seconds: now - max(entry.expiresAt, entry.storedAt)))"
    return [
      Quantity.text(size: entry.content.byteCount), Quantity.text(seconds: now - entry.storedAt), freshness,
      String(entry.uses), entry.lastUse.map { Quantity.text(seconds: now - $0) } ?? "never",
      entry.content.format?.rawValue ?? "", entry.variants > 0 ? String(entry.variants) : "", entry.name,
    ]
  }
}

extension OpenCache {
  /// The next entries of a listing; nil at its end.
  func nextPage(of listing: EntryListing) throws(ExitError) -> [CacheEntry]? {
    try perform(with: listing) { listing throws(StoreError) in try listing.nextPage() }
  }
}

extension CacheEntry {
  /// The key, the transform of a variant, and what else distinguishes the entry.
  var name: String {
    var name = key
    if !variant.isEmpty { name += " \(variant)" }
    if !partition.isEmpty { name += " (credentials \(partition.prefix(8)))" }
    if !url.hasSameBytes(as: key) { name += " (\(url))" }
    return name
  }
}

extension JSONWriter {
  fileprivate mutating func members(of entry: CacheEntry, now: Int) {
    member("key", entry.key)
    member("url", entry.url)
    if !entry.partition.isEmpty { member("partition", entry.partition) }
    if !entry.variant.isEmpty { member("variant", entry.variant) }
    member("bytes", entry.content.byteCount)
    member("allocated", entry.allocated)
    members(of: entry.content)
    member("storedAt", Timestamp.format(entry.storedAt))
    member("validatedAt", Timestamp.format(entry.validatedAt))
    member("expiresAt", Timestamp.format(max(entry.expiresAt, entry.storedAt)))
    member("fresh", entry.expiresAt > now)
    if let lastUse = entry.lastUse { member("usedAt", Timestamp.format(lastUse)) }
    member("uses", entry.uses)
    member("variants", entry.variants)
    member("file", entry.file)
  }
}
