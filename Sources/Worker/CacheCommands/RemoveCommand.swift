internal import ImageStore
internal import LineRPC

extension CacheCommand {
  static let remove = CacheCommand(
    name: "rm", summary: "remove the images that match filters",
    description: """
      Removes the stored images that match all filters, as the method clear does: the variants of a
      matching original go with it, and so do the beginnings of interrupted transfers. At least one filter
      or --all is required. imageworker cache ls with the same filters shows the images first.

      Running workers of the directory notice it at once: they drop the images from their memory, too, and
      do not store an image whose transfer began before. A file that was delivered in the last 60 seconds
      is deleted when they end, by the next worker if none is running. The bytes are those on disk.
      """,
    options: [.init("all", "", .flag(\.command.all), "remove everything")] + OptionDefinition.filters,
    examples: [
      ("rm --host img.example.com", "all images of a host"),
      ("rm --older-than 30d --expired", "images older than 30 days that are stale"),
      ("rm --all", "everything, as long as no load stores more"),
    ],
    statuses: "0 done, 1 no image matches",
    run: { options, output throws(ExitError) in
      let filter = try options.filter()
      if options.command.all, filter != nil { throw .usage("--all and a filter must not be given together") }
      guard let chosen = filter ?? (options.command.all ? .all : nil) else {
        throw .usage("a filter must be given, or --all to remove everything")
      }
      let cache = try OpenCache(options, for: .writing)
      defer { cache.close() }
      let cleared = try cache.perform { tier throws(StoreError) in tier.clear(chosen) }
      if let failure = cleared.failure {
        throw ExitError(status: ExitStatus.inputOrOutput, message: "some images may be left: \(failure.message)")
      }
      let images = Quantity.text(cleared.removed, of: "image")
      try output.write("removed \(images), \(Quantity.text(size: cleared.bytes)) on disk") { writer in
        writer.member("removed", cleared.removed)
        writer.member("bytes", cleared.bytes)
      }
      return cleared.removed > 0
    })
}
