internal import ImageStore
internal import Platform
internal import Threads

/// The cache that a command works on: a disk tier with its thread.
///
/// The calling thread prints. It enters the tier for a page at a time, which ends with a commit, so that no transaction
/// is open while output blocks.
final class OpenCache: Sendable {
  enum Access {
    /// Neither creates nor changes a file. The command is no peer of the workers.
    case reading
    /// The command is a peer of the workers.
    case writing
    /// The same, with a new cache if there is none.
    case creating
  }

  /// The absolute path of the cache directory.
  let directory: String
  let namespace: String
  let tier: DiskTier

  /// Opens an existing cache.
  ///
  /// - Throws: an error with the status EX_NOINPUT if there is no such cache, and EX_CANTCREAT if it cannot be written.
  init(_ options: Options, for access: Access) throws(CommandError) {
    guard let chosen = options.cacheDirectory ?? CacheDirectory.standard else {
      throw CommandError(status: EX_NOINPUT, message: "HOME is not set; name a cache directory with --cache-dir")
    }
    directory = CacheDirectory.absolute(chosen)
    namespace = options.cacheNamespace
    let folder = "\(directory)/\(namespace)"
    var status = stat()
    guard access == .creating || stat(folder, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR else {
      throw Self.missing(directory, namespace)
    }
    // The limits of the workers apply to the cache, so this tier has none and evicts nothing.
    tier = DiskTier(
      directory: directory, namespace: namespace, limit: .max, minFreeFraction: 0, verify: .never,
      mode: access == .reading ? .readOnly : .readWrite, publishesLimit: false,
      executor: ThreadExecutor(name: "disk"),
      onWarning: { printMessage("warning: \($0.message)") })
    do throws(StoreError) {
      try enter { tier throws(StoreError) in try tier.open() }
    } catch {
      throw CommandError(
        status: access == .reading ? EX_NOINPUT : ExitStatus.noCacheDirectory,
        message: "the cache \(folder) cannot be used: \(error.message)")
    }
  }

  /// Runs `work` on the tier's thread, then ends its transaction.
  ///
  /// - Throws: an error with the status EX_IOERR if the index or a file fails.
  func perform<Result: Sendable>(
    _ work: @escaping @Sendable (isolated DiskTier) throws(StoreError) -> Result
  ) throws(CommandError) -> Result {
    do throws(StoreError) {
      return try enter { tier throws(StoreError) in
        let result = try work(tier)
        try tier.endTransaction()
        return result
      }
    } catch {
      throw CommandError(status: ExitStatus.inputOrOutput, message: error.message)
    }
  }

  /// Runs `work` on the tier's thread.
  private func enter<Result: Sendable>(
    _ work: @escaping @Sendable (isolated DiskTier) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    let answer = Locked<Swift.Result<Result, StoreError>?>(nil)
    tier.executor.run { [tier] in
      let result = Swift.Result { () throws(StoreError) in try tier.assumeIsolatedThrowing(work) }
      answer.withLock { $0 = result }
      answer.notify()
    }
    return try answer.wait { $0 }!.get()
  }

  func listing(
    matching filter: ClearFilter, in order: EntryOrder = .key, reversed: Bool = false, now: Int
  ) throws(CommandError) -> EntryListing {
    do throws(StoreError) {
      return try EntryListing(of: tier, matching: filter, in: order, reversed: reversed, now: now)
    } catch {
      throw CommandError(status: ExitStatus.inputOrOutput, message: error.message)
    }
  }

  /// The next entries of a listing; nil at its end.
  func nextPage(of listing: EntryListing) throws(CommandError) -> [CacheEntry]? {
    try perform { _ throws(StoreError) in
      try listing.assumeIsolatedThrowing { listing throws(StoreError) in try listing.nextPage() }
    }
  }

  /// Writes pending changes and leaves the directory.
  func close() {
    tier.executor.run { [tier] in
      tier.assumeIsolated { tier in
        tier.finishSweep()
        tier.close()
      }
    }
    tier.executor.stop()
  }

  private static func missing(_ directory: String, _ namespace: String) -> CommandError {
    var status = stat()
    guard stat(directory, &status) == 0 else {
      let reason = String(cString: strerror(errno))
      return CommandError(
        status: EX_NOINPUT,
        message: "there is no cache at \(directory): \(reason); name the directory of the worker with --cache-dir")
    }
    return CommandError(
      status: EX_NOINPUT,
      message:
        "the cache directory \(directory) has no namespace \(namespace); name the namespace of the worker with "
        + "--cache-namespace")
  }
}
