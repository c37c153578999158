internal import ImageStore
internal import LineRPC
internal import Platform

extension CacheCommand {
  static let export = CacheCommand(
    "export", "write images with their validators into an archive",
    description: """
      Writes the stored images that match all filters into a tar archive, for imageworker cache import on another
      machine or in another directory. Each image has a description with everything that a worker needs to serve and to
      revalidate it: key, URL, header fields, times and digest. The order is that of the keys, and the same entries give
      the same bytes. The memory that the command needs does not grow with the cache.

      Running workers go on meanwhile. An image that a worker removes before the command has opened it is left out and
      counted, and so is one whose file has another digest than the index says.

      Images for requests with credentials are left out, and so are header fields that set cookies, unless
      --with-credentials is given. Keys and URLs are in the archive with their query strings, which may contain
      signatures. Pins and the numbers of uses are not in it.

      The archive is written to standard output, which must not be a terminal, and a summary to standard error. With
      --output the summary is on standard output: as JSON it has the members images, bytes, withCredentials, gone and
      damaged.
      """,
    options: [
      CommandOption(
        "output", "FILE", .text(check: { $0.isEmpty ? "must not be empty" : nil }),
        "write the archive to this file, which appears, or is replaced, when it is complete"),
      .flag("originals", "leave out variants, which another cache can make again"),
      .flag("with-credentials", "include images for requests with credentials, and header fields that set cookies"),
    ] + FilterOptions.all,
    examples: [
      Example(command: "export --output images.tar", meaning: "the whole cache"),
      Example(
        command: "export --host img.example.com --originals | ssh other imageworker cache import",
        meaning: "the originals of a host, to another machine"),
    ],
    statuses: "0 done, 1 no image matches, or one is damaged",
    run: { arguments, output throws(CommandError) in
      let filter = try FilterOptions.filter(arguments, of: "export") ?? .all
      let path = arguments.text("output")
      guard path != nil || isatty(STDOUT_FILENO) == 0 else {
        throw .usage("export", "an archive cannot be written to a terminal; give --output FILE or redirect the output")
      }
      let cache = try OpenCache(arguments.worker, for: .reading)
      var export = ArchiveExport(
        of: cache, withVariants: !arguments.has("originals"), withCredentials: arguments.has("with-credentials"))
      try export.write(matching: filter, to: try ArchiveOutput(path, output))
      let counts = export.counts
      if path == nil {
        printMessage(counts.text)
      } else if output.format == .text {
        try output.line(counts.text)
      } else {
        try output.object { $0.members(of: counts) }
      }
      return counts.images.entries > 0 && counts.damaged == 0 ? .success : .negative
    })
}

extension ArchiveExport.Counts {
  var text: String {
    var parts = ["exported \(Quantities.count(images.entries, "image", "images")), \(Quantities.size(images.bytes))"]
    if withCredentials > 0 { parts.append("\(withCredentials) for requests with credentials left out") }
    if gone > 0 { parts.append("\(gone) removed meanwhile") }
    if damaged > 0 { parts.append("\(damaged) damaged; see imageworker cache verify") }
    return parts.joined(separator: "; ")
  }
}

extension JSONWriter {
  fileprivate mutating func members(of counts: ArchiveExport.Counts) {
    member("images", counts.images.entries)
    member("bytes", counts.images.bytes)
    member("withCredentials", counts.withCredentials)
    member("gone", counts.gone)
    member("damaged", counts.damaged)
  }
}
