internal import ImageStore
internal import LineRPC
internal import Platform

extension CacheCommand {
  static let importing = CacheCommand(
    "import", operands: "[FILE]", operandCount: 0...1, "store the images of an archive",
    description: """
      Stores the images of an archive that imageworker cache export has written, from FILE or standard input. Workers of
      the directory serve them as if they had loaded them: fresh images without a request, stale ones after a
      revalidation with the validator of their server. The directory is created if it does not exist.

      An image that the cache has as new or newer is kept, unless --replace is given. Importing counts as a use, so
      images that have not been used for longer are evicted if the cache would exceed its limit; the imported images do
      not evict each other. The limit is the one that a worker of the directory has used last, unless --disk-limit is
      given.

      Every image is compared with the digest and the format in its description before it is stored. A wrong one is
      refused, named on standard error by the number of its entry, and the next one follows. Archives are not signed:
      import only those that you trust as much as the servers of the images. The command may be interrupted at any
      time: what is stored by then stays, and a second run stores the rest.

      The line of JSON has the members stored, bytes, allocated, kept and refused.
      """,
    options: [
      .flag("replace", "replace also images that are as new or newer"),
      .ofWorker("disk-limit", "limit of the cache, which must be that of its workers [the last one used, or 1G]"),
      .ofWorker("min-free"),
    ],
    examples: [
      Example(command: "import images.tar", meaning: "the images of a file"),
      Example(command: "import --cache-dir /srv/cache < images.tar", meaning: "into another directory"),
    ],
    statuses: "0 every image is stored, or was already; 1 one was refused; 65 no archive, or a damaged one",
    run: { arguments, output throws(CommandError) in
      let path = arguments.operands.first.flatMap { $0 == "-" ? nil : $0 }
      guard path != nil || isatty(STDIN_FILENO) == 0 else {
        throw .usage("import", "an archive cannot be read from a terminal; name a FILE or redirect the input")
      }
      let input = try ArchiveInput(path)
      let cache = try OpenCache(arguments.worker, for: .creating)
      defer { cache.close() }
      let limit = try cache.limit(arguments, of: "import")
      let minFree = Double(arguments.worker.minFree) / 100
      let pinned = try cache.perform { tier throws(StoreError) in
        tier.setLimit(limit)
        tier.setMinFreeFraction(minFree)
        return tier.counts.pinned.bytes
      }
      let refusals = Refusals()
      var archive = ArchiveImport(
        into: cache, replacing: arguments.has("replace"), maxAllocated: limit - pinned,
        onRefusal: { refusals.report($0) })
      try archive.read(input)
      refusals.end()
      let counts = archive.counts
      switch output.format {
      case .text: try output.line(counts.text)
      case .json:
        try output.object { writer in
          writer.member("stored", counts.stored)
          writer.member("bytes", counts.bytes)
          writer.member("allocated", counts.allocated)
          writer.member("kept", counts.kept)
          writer.member("refused", counts.refused)
        }
      }
      return counts.refused == 0 ? .success : .negative
    })
}

/// Lines about refused entries on standard error, of which a bad archive could cause any number.
private final class Refusals {
  private var count = 0
  private static let maxLines = 20

  func report(_ line: String) {
    count += 1
    if count <= Self.maxLines { printMessage(line) }
  }

  func end() {
    if count > Self.maxLines { printMessage("\(count - Self.maxLines) more entries were refused") }
  }
}

extension ArchiveImport.Counts {
  var text: String {
    var parts = ["stored \(Quantities.count(stored, "image", "images")), \(Quantities.size(bytes))"]
    if kept > 0 { parts.append("\(kept) not newer than those of the cache") }
    if refused > 0 { parts.append("\(refused) refused") }
    return parts.joined(separator: "; ")
  }
}

extension OpenCache {
  /// The limit of the workers: that of the option, or the last one that a worker has published. If a worker of an older
  /// version has not, the default, but so much that nothing is evicted at once.
  func limit(_ arguments: CommandArguments, of command: String) throws(CommandError) -> Int64 {
    if arguments.has("disk-limit") {
      guard arguments.worker.diskLimit > 0 else { throw .usage(command, "--disk-limit must be more than 0") }
      return arguments.worker.diskLimit
    }
    return try perform { tier throws(StoreError) in
      try tier.publishedLimit() ?? max(Options().diskLimit, tier.counts.bytes)
    }
  }
}
