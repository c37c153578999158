internal import ImageStore
internal import LineRPC

extension CacheCommand {
  static let verify = CacheCommand(
    "verify", "read all files and compare their digests with the index",
    description: """
      Reads every stored image whole and compares its size and its SHA-256 with the index, then looks for files that the
      index does not know. Reports each missing or damaged image and each orphaned file. On a terminal a bar on standard
      error shows the progress. Running workers go on meanwhile; what they evict or replace is not reported.

      --repair removes what is reported: an image whose file is missing or damaged is transferred again by the next
      load. Without it nothing is changed, except that the command takes the lock of the index for a moment to be sure that an
      image is missing. Orphaned files are left by workers that were killed; the next worker removes them, too.

      A line of JSON has the members finding (missing, size, damaged, unreadable or orphan), file, bytes, key, url,
      variant and partition of an image, found (the size of a file with another size), message (of a failure to read)
      and repaired. The last line has the member summary with images, bytes, missing, damaged, orphans and repaired.
      """,
    options: [.flag("repair", "remove missing and damaged images and orphaned files")] + FilterOptions.all,
    examples: [
      Example(command: "verify", meaning: "check everything"),
      Example(command: "verify --host img.example.com --repair", meaning: "check and repair the images of a host"),
    ],
    statuses: "0 everything is intact, 1 something was reported (repaired or not)",
    run: { arguments, output throws(CommandError) in
      let filter = try FilterOptions.filter(arguments, of: "verify")
      var verification = try Verification(arguments, output)
      defer { verification.close() }
      try verification.examineEntries(matching: filter ?? .all)
      if filter == nil { try verification.examineOrphans() }
      verification.endProgress()
      try verification.summarize()
      return verification.counts.isClean ? .success : .negative
    })
}
