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
  }

  /// The absolute path of the cache directory.
  let directory: String
  let tier: DiskTier

  /// Opens an existing cache.
  ///
  /// - Throws: an error with the status EX_NOINPUT if there is no such cache, and EX_CANTCREAT if it cannot be written.
  ///
  /// - Parameter executor: the thread of several caches.
  init(
    _ options: Options, for access: Access, on executor: ThreadExecutor = ThreadExecutor(name: "disk")
  ) throws(ExitError) {
    guard let chosen = options.cachePath else {
      throw ExitError(status: EX_NOINPUT, message: CacheDirectory.unknown)
    }
    directory = chosen
    let folder = "\(directory)/\(options.cacheNamespace)"
    var status = stat()
    guard stat(directory, &status) == 0 else {
      let message = "there is no cache at \(directory): \(String(cString: strerror(errno)))"
      throw ExitError(
        status: EX_NOINPUT, message: "\(message); name the directory of the worker with --cache-dir")
    }
    guard stat(folder, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
      let message = "the cache directory \(directory) has no namespace \(options.cacheNamespace)"
      throw ExitError(
        status: EX_NOINPUT, message: "\(message); name the namespace of the worker with --cache-namespace")
    }
    // The limits of the workers apply to the cache, so this tier has none and evicts nothing.
    tier = DiskTier(
      directory: directory, namespace: options.cacheNamespace, limit: .max, minFreeFraction: 0, verify: .never,
      mode: access == .reading ? .readOnly : .readWrite, executor: executor,
      onWarning: { printMessage("warning: \($0.message)") })
    do throws(StoreError) {
      try enter(tier) { tier throws(StoreError) in try tier.open() }
    } catch {
      throw ExitError(
        status: access == .reading ? EX_NOINPUT : ExitStatus.noCacheDirectory,
        message: "the cache \(folder) cannot be used: \(error.message)")
    }
  }

  /// Runs `work` on the tier's thread, then ends the tier's transaction.
  ///
  /// - Throws: an error with the status EX_IOERR if the index or a file fails.
  func perform<Result: Sendable>(
    _ work: @escaping @Sendable (isolated DiskTier) throws(StoreError) -> Result
  ) throws(ExitError) -> Result {
    try perform(with: tier, work)
  }

  /// The same for an actor that runs on the tier's thread.
  func perform<Subject: Actor, Result: Sendable>(
    with subject: Subject, _ work: @escaping @Sendable (isolated Subject) throws(StoreError) -> Result
  ) throws(ExitError) -> Result {
    do throws(StoreError) {
      let tier = tier
      return try enter(subject) { subject throws(StoreError) in
        let result = try work(subject)
        try tier.assumeIsolatedThrowing { tier throws(StoreError) in try tier.endTransaction() }
        return result
      }
    } catch {
      throw ExitError(status: ExitStatus.inputOrOutput, message: error.message)
    }
  }

  private func enter<Subject: Actor, Result: Sendable>(
    _ subject: Subject, _ work: @escaping @Sendable (isolated Subject) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    let answer = Locked<Swift.Result<Result, StoreError>?>(nil)
    tier.executor.run {
      let result = Swift.Result { () throws(StoreError) in try subject.assumeIsolatedThrowing(work) }
      answer.withLock { $0 = result }
      answer.notify()
    }
    return try answer.wait { $0 }!.get()
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
}
