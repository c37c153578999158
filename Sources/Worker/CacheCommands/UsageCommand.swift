internal import ImageStore
internal import LineRPC
internal import Platform

extension CacheCommand {
  static let usage = CacheCommand(
    name: "du", summary: "add up sizes by kind, format and host",
    description: """
      Adds up the sizes of the stored images that match all filters: of originals and variants, of each
      format, and of each host, the largest first. Sizes on disk are in whole blocks, as --disk-limit
      counts them. Without a filter, the files that are no images of the cache follow: the beginnings of
      interrupted transfers, and removed images that hosts may still use.

      A line of JSON has the members group (kind, format, host, files or total), name, images or files,
      bytes (not for files) and allocated.
      """,
    options: [.limit("list at most this many hosts [20 as text, all as JSON]")] + OptionDefinition.filters,
    examples: [
      ("du", "the hosts that take the most space"), ("du --older-than 30d", "what is older than 30 days"),
    ],
    statuses: "0 done, 1 no image matches",
    run: { options, output throws(ExitError) in
      let filter = try options.filter()
      let cache = try OpenCache(options, for: .reading)
      let summary = try cache.summary(matching: filter ?? .all, now: time(nil))
      let maxHosts = options.command.limit > 0 ? options.command.limit : output.isText ? 20 : .max
      var total = EntrySum()
      try output.writeText(table.header)
      for kind in UsageGroup.Kind.allCases {
        let groups = try cache.perform(with: summary) { summary throws(StoreError) in summary.groups(of: kind) }
        var others = EntrySum()
        for (number, group) in groups.enumerated() {
          if kind == .kind { total += group.sum }
          if kind != .host || number < maxHosts {
            try output.write(group.sum, kind.rawValue, group.name)
          } else {
            others += group.sum
          }
        }
        if others.entries > 0 { try output.writeText(row(others, "host", "(others; see --limit)")) }
      }
      if filter == nil {
        let files = try cache.perform { tier throws(StoreError) in try tier.otherFiles() }
        try output.write(files.partials, "interrupted transfers")
        try output.write(files.pendingDeletions, "waiting for deletion")
      }
      try output.write(total, "total", "images")
      return total.entries > 0
    })

  fileprivate static let table = TextTable(columns: [
    ("IMAGES", 8), ("SIZE", 5), ("ON DISK", 7), ("GROUP", -6), ("NAME", 0),
  ])

  fileprivate static func row(_ sum: EntrySum, _ group: String, _ name: String) -> String {
    let (size, allocated) = (Quantity.text(size: sum.bytes), Quantity.text(size: sum.allocated))
    return table.row([String(sum.entries), size, allocated, group, name])
  }
}

extension OpenCache {
  /// The sums of all matching entries.
  fileprivate func summary(matching filter: ClearFilter, now: Int) throws(ExitError) -> UsageSummary {
    let summary = UsageSummary(of: tier, matching: filter, now: now)
    while try perform(with: summary, { summary throws(StoreError) in try summary.step() }) {}
    return summary
  }
}

extension CommandOutput {
  fileprivate func write(_ sum: EntrySum, _ group: String, _ name: String) throws(ExitError) {
    try write(CacheCommand.row(sum, group, name)) { writer in
      writer.member("group", group)
      writer.member("name", name)
      writer.member("images", sum.entries)
      writer.member("bytes", sum.bytes)
      writer.member("allocated", sum.allocated)
    }
  }

  fileprivate func write(_ files: OtherFiles.Sum, _ name: String) throws(ExitError) {
    let size = Quantity.text(size: files.allocated)
    try write(CacheCommand.table.row([String(files.count), "", size, "files", name])) { writer in
      writer.member("group", constant: "files")
      writer.member("name", name)
      writer.member("files", files.count)
      writer.member("allocated", files.allocated)
    }
  }
}
