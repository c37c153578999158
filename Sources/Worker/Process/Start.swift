internal import ImageStore
internal import Loading
internal import Platform
internal import Threads
internal import Tracing

/// The descriptors that the threads, the cache and one transfer need.
let minDescriptors = 32

/// The reason why a worker cannot start, and its exit status.
struct StartError: Error {
  let message: String
  var status = ExitStatus.noCacheDirectory
}

/// The options with the content of the cookie file. The file is not read again.
func withCookies(_ options: Options) throws(StartError) -> Options {
  do throws(StoreError) {
    return try options.readingCookies()
  } catch {
    throw StartError(message: "the cookie file cannot be read: \(error.message)", status: ExitStatus.noCookieFile)
  }
}

func openMetricsFile(_ options: Options, _ log: Log) throws(StartError) -> MetricsFile? {
  guard let path = options.metricsFile else { return nil }
  do throws(StoreError) {
    return try MetricsFile(path: CacheDirectory.absolute(path), log: log)
  } catch {
    throw StartError(message: "the metrics file cannot be written: \(error.message)")
  }
}

func openTrace(_ options: Options, _ log: Log) throws(StartError) -> TraceRecorder? {
  guard let path = options.trace else { return nil }
  do throws(TraceError) {
    return try .open(CacheDirectory.absolute(path), limit: options.traceLimit, log)
  } catch {
    throw StartError(message: "the trace file \(path) cannot be used: \(error.message)")
  }
}

/// Opens the cache.
///
/// - Parameter seed: for the random numbers of a recorded or replayed session, which also sees the times of
///   `LoadingActor.sequencer`. Nil for numbers and times of the system.
func openStorage(_ options: Options, _ log: Log, seed: UInt64? = nil) throws(StartError) -> DiskServices {
  let executor = ThreadExecutor(name: "disk")
  guard let directory = options.cacheDirectory ?? CacheDirectory.standard else {
    throw StartError(message: "HOME is not set; name a cache directory with --cache-dir")
  }
  let warn: @Sendable (StoreWarning) -> Void = { log.write(.cache($0)) }
  let absolute = CacheDirectory.absolute(directory)
  var environment = StoreEnvironment.system
  if let sequencer = LoadingActor.sequencer, let seed {
    environment.now = { executor.isCurrent ? sequencer.unixTimeOfDisk : sequencer.unixTime }
    let random = Locked(LoaderRandom(seed: seed))
    environment.random = { random.withLock { $0.next() } }
  }
  var tier: DiskTier?
  if options.diskLimit > 0 {
    tier = DiskTier(
      directory: absolute, namespace: options.cacheNamespace, limit: options.diskLimit,
      minFreeFraction: options.minFreeFraction, verify: options.verification, executor: executor,
      environment: environment, onWarning: warn)
  }
  let readOnly = options.readOnlyCaches.map { directory in
    DiskTier(
      directory: CacheDirectory.absolute(directory), namespace: options.cacheNamespace, limit: .max,
      verify: options.verification, mode: .readOnly, executor: executor, onWarning: warn)
  }
  // Their folders are named by random numbers, which must differ between a session and its replay.
  var temporary = environment
  temporary.random = StoreEnvironment.system.random
  let storage = DiskServices(
    directory: absolute, executor: executor, tier: tier, readOnlyTiers: readOnly,
    scratch: ScratchFolder(executor: executor, environment: temporary),
    pixels: PixelFolder(executor: executor, environment: temporary), now: environment.now)
  do throws(StoreError) {
    try storage.open()
  } catch {
    var path = absolute
    if case .unusable(let unusable) = error.kind { path = unusable }
    let isReadOnly = options.readOnlyCaches.contains { path.hasPrefix(CacheDirectory.absolute($0)) }
    let name = isReadOnly ? "the read-only cache" : "the cache directory"
    throw StartError(message: "\(name) \(path) cannot be used: \(error.message)")
  }
  return storage
}
