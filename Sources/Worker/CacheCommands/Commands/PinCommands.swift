internal import ImageStore
internal import LineRPC
internal import Loading
internal import Platform

extension CacheCommand {
  private static let operandText = """
    An image is named by its URL, or by its key if that is no URL. With - the names are read from standard input, one
    per line. Filters select images, too: an image must match all that are given.
    """

  static let pin = CacheCommand(
    "pin", operands: "[URL...]", operandCount: 0...1_000_000, "keep images from eviction",
    description: """
      Pins stored images: workers do not evict them, and --expired and --older-than of rm do not remove them.
      \(operandText)

      A pin belongs to the key. It stays when the image is revalidated, replaced or damaged, and ends with unpin, with
      any other filter of rm, or with the method clear. The variants that are stored at the time are pinned with their
      original, later ones are not. Running workers see a pin when they evict next.

      The bytes of pinned images count against the limit. They may use 90 % of it: a pin that would exceed that is
      refused. If a worker has a smaller limit than the pinned images need, it evicts those that were not used for
      longest.

      The line of JSON has the members pinned (by this command), images and allocated (of all pinned images).
      imageworker cache ls marks pinned images.
      """,
    options: [
      .ofWorker("disk-limit", "limit of the cache, which must be that of its workers [the last one used, or 1G]")
    ] + FilterOptions.all,
    examples: [
      Example(command: "pin https://example.com/logo.png", meaning: "one image and its variants"),
      Example(command: "pin --prefix https://example.com/icons/", meaning: "all images with this prefix"),
      Example(command: "pin - < urls.txt", meaning: "the images of a list"),
    ],
    statuses: "0 every named image is pinned, 1 one is not stored, none matches, or the limit is exceeded",
    run: { arguments, output throws(CommandError) in
      let targets = try PinTargets(arguments, of: "pin")
      let cache = try OpenCache(arguments.worker, for: .writing)
      defer { cache.close() }
      let limit = try cache.limit(arguments, of: "pin")
      var (added, missing, totals) = (0, 0, PinTotals())
      var refusal: StoreError?
      while refusal == nil, let target = targets.next() {
        let result = try cache.perform { tier in
          Result { () throws(StoreError) in try tier.pin(target.filter, limit: limit) }
        }
        switch result {
        case .success(let result):
          (added, totals) = (added + result.added, result.totals)
          if result.matching == 0 {
            missing += 1
            printMessage(target.missingText)
          }
        case .failure(let error) where error.kind == .overLimit: refusal = error
        case .failure(let error): throw CommandError(status: ExitStatus.inputOrOutput, message: error.message)
        }
      }
      if let refusal {
        totals = try cache.perform { tier throws(StoreError) in tier.counts.pinned }
        printMessage("not pinned: \(refusal.message)")
      }
      switch output.format {
      case .text:
        let all = "\(Quantities.count(totals.entries, "image is", "images are")) pinned"
        try output.line(
          "pinned \(Quantities.count(added, "image", "images")); \(all), \(Quantities.size(totals.bytes)) on disk")
      case .json:
        try output.object { writer in
          writer.member("pinned", added)
          writer.member("images", totals.entries)
          writer.member("allocated", totals.bytes)
        }
      }
      return missing == 0 && refusal == nil ? .success : .negative
    })

  static let unpin = CacheCommand(
    "unpin", operands: "[URL...]", operandCount: 0...1_000_000, "let pinned images be evicted again",
    description: """
      Removes pins. The images stay until they are evicted in their turn. \(operandText)

      The line of JSON has the member unpinned.
      """,
    options: [.flag("all", "remove all pins")] + FilterOptions.all,
    examples: [
      Example(command: "unpin https://example.com/logo.png", meaning: "one image and its variants"),
      Example(command: "unpin --all", meaning: "all images"),
    ],
    statuses: "0 every named image was pinned, 1 one was not, or none matches",
    run: { arguments, output throws(CommandError) in
      let targets = try PinTargets(arguments, of: "unpin")
      let cache = try OpenCache(arguments.worker, for: .writing)
      defer { cache.close() }
      var (removed, missing) = (0, 0)
      while let target = targets.next() {
        let count = try cache.perform { tier throws(StoreError) in try tier.unpin(target.filter) }
        removed += count
        if count == 0 {
          missing += 1
          printMessage(target.unpinnedText)
        }
      }
      switch output.format {
      case .text: try output.line("unpinned \(Quantities.count(removed, "image", "images"))")
      case .json: try output.object { $0.member("unpinned", removed) }
      }
      return missing == 0 ? .success : .negative
    })
}

/// The images that a command names: a filter, operands, or lines of standard input.
private final class PinTargets {
  struct Target {
    let filter: ClearFilter
    /// The name as given; nil for a filter.
    let name: String?

    var missingText: String { name.map { "\($0.quotable) is not stored" } ?? "no image matches" }
    var unpinnedText: String { name.map { "\($0.quotable) is not pinned" } ?? "no pinned image matches" }
  }

  private let defaults: LoadDefaults
  private var waiting: [Target] = []
  private var names: [String]
  private let readsInput: Bool

  /// - Throws: for a wrong combination of operands and filters.
  init(_ arguments: CommandArguments, of command: String) throws(CommandError) {
    defaults = LoadDefaults(arguments.worker)
    names = arguments.operands.reversed()
    readsInput = names == ["-"]
    if readsInput { names = [] }
    var filter = try FilterOptions.filter(arguments, of: command)
    if arguments.has("all") {
      guard filter == nil else { throw .usage(command, "--all and a filter must not be given together") }
      filter = .all
    }
    guard filter == nil || arguments.operands.isEmpty else {
      throw .usage(command, "a URL and a filter must not be given together")
    }
    guard filter != nil || !arguments.operands.isEmpty else {
      let all = command == "unpin" ? ", or --all" : ""
      throw .usage(command, "a URL must be given, - for a list on standard input, or a filter\(all)")
    }
    waiting = filter.map { [Target(filter: $0, name: nil)] } ?? []
  }

  func next() -> Target? {
    if let target = waiting.popLast() { return target }
    if !readsInput { return names.popLast().map { target(named: $0) } }
    while let line = readLine() {
      if !line.allSatisfy({ $0.isWhitespace }) { return target(named: line) }
    }
    return nil
  }

  private func target(named name: String) -> Target {
    guard let request = try? LoadParameters.request(for: name, key: nil, defaults) else {
      return Target(filter: .key(name), name: name)
    }
    return Target(filter: .url(name, key: request.key), name: name)
  }
}
