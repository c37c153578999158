internal import ImageStore
internal import LineRPC

extension CacheCommand {
  static let remove = CacheCommand(
    "rm", "remove the images that match filters",
    description: """
      Removes the stored images that match all filters, as the method clear does: the variants of a matching original
      go with it, and so do the beginnings of interrupted transfers. At least one filter or --all is required.
      imageworker cache ls with the same filters shows the images first.

      Running workers of the directory notice it at once: they drop the images from their memory, too, and do not store
      an image whose transfer began before. A file that was delivered in the last 60 seconds is deleted when they end,
      by the next worker if none is running. The bytes are those on disk.

      A pin protects an image from --expired and --older-than. Any other filter removes pinned images and their pins.
      """,
    options: [.flag("all", "remove everything")] + FilterOptions.all,
    examples: [
      Example(command: "rm --host img.example.com", meaning: "all images of a host"),
      Example(command: "rm --older-than 30d --expired", meaning: "images older than 30 days that are stale"),
      Example(command: "rm --all", meaning: "everything, as long as no load stores more"),
    ],
    statuses: "0 done, 1 no image matches",
    run: { arguments, output throws(CommandError) in
      let filter = try FilterOptions.filter(arguments, of: "rm")
      if arguments.has("all"), filter != nil {
        throw .usage("rm", "--all and a filter must not be given together")
      }
      guard let chosen = filter ?? (arguments.has("all") ? .all : nil) else {
        throw .usage("rm", "a filter must be given, or --all to remove everything")
      }
      let cache = try OpenCache(arguments.worker, for: .writing)
      defer { cache.close() }
      let cleared = try cache.perform { tier throws(StoreError) in tier.clear(chosen) }
      if let failure = cleared.failure {
        throw CommandError(
          status: ExitStatus.inputOrOutput, message: "some images may be left: \(failure.message)")
      }
      switch output.format {
      case .text:
        let images = Quantities.count(cleared.removed, "image", "images")
        try output.line("removed \(images), \(Quantities.size(cleared.bytes)) on disk")
      case .json:
        try output.object { writer in
          writer.member("removed", cleared.removed)
          writer.member("bytes", cleared.bytes)
        }
      }
      return cleared.removed > 0 ? .success : .negative
    })
}
