internal import ImageStore
internal import Platform

extension CacheCommand {
  static let list = CacheCommand(
    "ls", "list the stored images",
    description: """
      Lists the stored images, one per line: originals, and the variants that transforms have made of them. An image
      must match all filters that are given. The memory that the command needs does not grow with the cache. Workers
      may store and evict images meanwhile: an image that is stored all the time is listed exactly once.

      Columns: SIZE of the image; AGE since its body arrived; FRESHNESS, how long it stays fresh or has been stale by
      the --max-age of the worker that stored it; USES, the number of deliveries since it was stored; LAST USE; FORMAT; the
      number of VARIANTS of an original; KEY, followed by the transform of a variant and by the URL if it differs from
      the key. Images for requests with credentials are marked with the beginning of a digest, and pinned ones with
      (pinned).

      Members of a line of JSON: key, url, partition (a digest of the credentials, if any), variant, bytes, allocated,
      format, mediaType, width, height, storedAt, validatedAt, expiresAt, fresh, usedAt, uses, variants, pinned, and file
      (relative to the folder of the namespace).
      """,
    options: [
      CommandOption(
        "sort", "ORDER", .choice(EntryOrder.allCases.map { $0.rawValue }),
        "key (by bytes), size (largest first), age (oldest first), used (last used first), uses (most used first) [key]"
      ),
      .flag("reverse", "reverse the order"),
      CommandOption("limit", "N", .count(1...1_000_000_000), "list at most this many"),
    ] + FilterOptions.all,
    examples: [
      Example(command: "ls --sort size --limit 20", meaning: "the 20 largest images"),
      Example(command: "ls --host img.example.com --expired", meaning: "images of a host that are stale"),
      Example(command: "ls --json | jq -r .url", meaning: "all URLs"),
    ],
    statuses: "0 done, 1 no image matches",
    run: { arguments, output throws(CommandError) in
      let filter = try FilterOptions.filter(arguments, of: "ls") ?? .all
      let order = arguments.text("sort").flatMap { EntryOrder(rawValue: $0) } ?? .key
      let cache = try OpenCache(arguments.worker, for: .reading)
      let now = time(nil)
      let listing = try cache.listing(matching: filter, in: order, reversed: arguments.has("reverse"), now: now)
      var rest = arguments.count("limit") ?? .max
      var sum = EntrySum()
      while rest > 0, let page = try cache.nextPage(of: listing) {
        for entry in page.prefix(rest) {
          if sum.entries == 0, output.format == .text { try output.line(EntryText.header) }
          sum.add(entry)
          switch output.format {
          case .text: try output.line(EntryText.row(entry, now: now))
          case .json: try output.object { $0.members(of: entry, now: now) }
          }
        }
        rest -= min(rest, page.count)
      }
      if output.format == .text { try output.line(sum.text) }
      return sum.entries > 0 ? .success : .negative
    })
}

/// The number and the sizes of entries.
struct EntrySum: Equatable {
  var entries = 0
  var bytes: Int64 = 0
  var allocated: Int64 = 0

  mutating func add(_ entry: CacheEntry) {
    entries += 1
    bytes += entry.byteCount
    allocated += entry.allocated
  }

  var text: String {
    let size = "\(Quantities.size(bytes)) (\(Quantities.size(allocated)) on disk)"
    return "\(Quantities.count(entries, "image", "images")), \(size)"
  }
}
