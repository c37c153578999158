internal import ImageStore
internal import LineRPC
internal import Platform
internal import Threads

extension CacheCommand {
  static let usage = CacheCommand(
    "du", "add up sizes by kind, format and host",
    description: """
      Adds up the sizes of the stored images that match all filters: of originals and variants, of each format, and of
      each host, the largest first. Sizes on disk are in whole blocks, as --disk-limit counts them. Without a filter,
      the files that are no images of the cache follow: the beginnings of interrupted transfers, and removed images
      that hosts may still use. The memory that the command needs does not grow with the cache.

      A line of JSON has the members group (kind, format, host, files or total), name, images or files, bytes (not for
      files) and allocated.
      """,
    options: [
      CommandOption("limit", "N", .count(1...1_000_000_000), "list at most this many hosts [20 as text, all as JSON]")
    ] + FilterOptions.all,
    examples: [
      Example(command: "du", meaning: "the hosts that take the most space"),
      Example(command: "du --older-than 30d", meaning: "what is older than 30 days"),
    ],
    statuses: "0 done, 1 no image matches",
    run: { arguments, output throws(CommandError) in
      let filter = try FilterOptions.filter(arguments, of: "du")
      let cache = try OpenCache(arguments.worker, for: .reading)
      let summary = try cache.summary(matching: filter ?? .all, now: time(nil))
      let maxHosts = arguments.count("limit") ?? (output.format == .text ? 20 : .max)
      var total = EntrySum()
      if output.format == .text { try output.line(UsageText.header) }
      for kind in UsageGroup.Kind.allCases {
        var rest = kind == .host ? maxHosts : .max
        var last: UsageGroup?
        var others = EntrySum()
        while case let page = try cache.groups(of: kind, after: last, in: summary), !page.isEmpty {
          for group in page {
            if kind == .kind { total.add(group) }
            if rest > 0 { try output.group(group) } else { others.add(group) }
            rest -= min(rest, 1)
          }
          last = page.last
        }
        if others.entries > 0, output.format == .text { try output.others(others) }
      }
      if filter == nil { try output.otherFiles(try cache.perform { tier throws(StoreError) in try tier.otherFiles() }) }
      try output.total(total)
      return total.entries > 0 ? .success : .negative
    })
}

extension OpenCache {
  /// The sums of all matching entries.
  fileprivate func summary(matching filter: ClearFilter, now: Int) throws(CommandError) -> UsageSummary {
    let tier = tier
    let summary = try perform { _ throws(StoreError) in try UsageSummary(of: tier, matching: filter, now: now) }
    while try perform({ _ throws(StoreError) in
      try summary.assumeIsolatedThrowing { summary throws(StoreError) in try summary.step() }
    }) {}
    return summary
  }

  fileprivate func groups(
    of kind: UsageGroup.Kind, after last: UsageGroup?, in summary: UsageSummary
  ) throws(CommandError) -> [UsageGroup] {
    try perform { _ throws(StoreError) in
      try summary.assumeIsolatedThrowing { summary throws(StoreError) in
        try summary.groups(of: kind, after: last, limit: 512)
      }
    }
  }
}

extension EntrySum {
  fileprivate mutating func add(_ group: UsageGroup) {
    entries += group.entries
    bytes += group.bytes
    allocated += group.allocated
  }
}

/// Sums as rows of a table for people.
enum UsageText {
  static let header = row("IMAGES", "SIZE", "ON DISK", "GROUP", "NAME")

  static func row(_ entries: Int, _ bytes: Int64?, _ allocated: Int64, _ group: String, _ name: String) -> String {
    row(String(entries), bytes.map { Quantities.size($0) } ?? "", Quantities.size(allocated), group, name)
  }

  private static func row(
    _ entries: String, _ size: String, _ allocated: String, _ group: String, _ name: String
  ) -> String {
    [entries.rightAligned(to: 8), size.rightAligned(to: 5), allocated.rightAligned(to: 7), group.padded(to: 6), name]
      .joined(separator: "  ")
  }
}

extension CommandOutput {
  fileprivate func group(_ group: UsageGroup) throws(CommandError) {
    switch format {
    case .text:
      try line(UsageText.row(group.entries, group.bytes, group.allocated, group.kind.rawValue, group.name))
    case .json:
      try object { writer in
        writer.member("group", group.kind.rawValue)
        writer.member("name", group.name)
        writer.member("images", group.entries)
        writer.member("bytes", group.bytes)
        writer.member("allocated", group.allocated)
      }
    }
  }

  /// The hosts beyond the limit.
  fileprivate func others(_ sum: EntrySum) throws(CommandError) {
    try line(UsageText.row(sum.entries, sum.bytes, sum.allocated, "host", "(others; see --limit)"))
  }

  fileprivate func otherFiles(_ files: OtherFiles) throws(CommandError) {
    for (name, sum) in [("interrupted transfers", files.partials), ("waiting for deletion", files.pendingDeletions)] {
      switch format {
      case .text: try line(UsageText.row(sum.count, nil, sum.allocated, "files", name))
      case .json:
        try object { writer in
          writer.member("group", constant: "files")
          writer.member("name", name)
          writer.member("files", sum.count)
          writer.member("allocated", sum.allocated)
        }
      }
    }
  }

  fileprivate func total(_ sum: EntrySum) throws(CommandError) {
    switch format {
    case .text: try line(UsageText.row(sum.entries, sum.bytes, sum.allocated, "total", "images"))
    case .json:
      try object { writer in
        writer.member("group", constant: "total")
        writer.member("name", constant: "images")
        writer.member("images", sum.entries)
        writer.member("bytes", sum.bytes)
        writer.member("allocated", sum.allocated)
      }
    }
  }
}
