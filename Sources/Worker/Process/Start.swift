internal import ImageStore
internal import Loading
internal import Platform
internal import Threads
internal import Tracing

/// The descriptors that the threads, the cache and one transfer need.
let minDescriptors = 32

/// The reason why a worker or a command cannot do its work, and the exit status.
struct ExitError: Error {
  var status = ExitStatus.noCacheDirectory
  /// A line for standard error.
  let message: String

  /// A wrong command line.
  static func usage(_ message: String) -> ExitError { ExitError(status: EX_USAGE, message: message) }
}

func openMetricsFile(_ options: Options, _ log: Log) throws(ExitError) -> MetricsFile? {
  guard let path = options.metricsFile else { return nil }
  do throws(StoreError) {
    return try MetricsFile(path: CacheDirectory.absolute(path), log: log)
  } catch {
    throw ExitError(message: "the metrics file cannot be written: \(error.message)")
  }
}

func openTrace(_ options: Options, _ log: Log) throws(ExitError) -> TraceRecorder? {
  guard let path = options.trace else { return nil }
  do throws(TraceError) {
    return try .open(CacheDirectory.absolute(path), limit: options.traceLimit, log)
  } catch {
    throw ExitError(message: "the trace file \(path) cannot be used: \(error.message)")
  }
}

/// Opens the cache.
func openStorage(_ options: Options, _ log: Log) throws(ExitError) -> DiskServices {
  let executor = ThreadExecutor(name: "disk")
  guard let directory = options.cachePath else { throw ExitError(message: CacheDirectory.unknown) }
  let warn: @Sendable (StoreWarning) -> Void = { log.write(.cache($0)) }
  var tier: DiskTier?
  if options.diskLimit > 0 {
    tier = DiskTier(
      directory: directory, namespace: options.cacheNamespace, limit: options.diskLimit,
      minFreeFraction: options.minFreeFraction, verify: options.verify, executor: executor,
      onWarning: warn)
  }
  let readOnly = options.readOnlyCaches.map { directory in
    DiskTier(
      directory: CacheDirectory.absolute(directory), namespace: options.cacheNamespace, limit: .max,
      verify: options.verify, mode: .readOnly, executor: executor, onWarning: warn)
  }
  let storage = DiskServices(
    directory: directory, executor: executor, tier: tier, readOnlyTiers: readOnly,
    scratch: ScratchFolder(executor: executor), pixels: PixelFolder(executor: executor),
    now: StoreEnvironment.system.now)
  do throws(StoreError) {
    try storage.open()
  } catch {
    var path = directory
    if case .unusable(let unusable) = error.kind { path = unusable }
    let isReadOnly = options.readOnlyCaches.contains { path.hasPrefix(CacheDirectory.absolute($0)) }
    let name = isReadOnly ? "the read-only cache" : "the cache directory"
    throw ExitError(message: "\(name) \(path) cannot be used: \(error.message)")
  }
  return storage
}
