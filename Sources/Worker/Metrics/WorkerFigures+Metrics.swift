internal import HTTPTransport
internal import HTTPTypes
internal import ImageCodec
internal import ImageStore
internal import Loading

/// The metrics of a worker. No other place lists them.
extension WorkerFigures {
  /// - Parameter isRunning: false in the last metrics that a worker writes.
  func families(_ process: ProcessFigures, isRunning: Bool = true) -> [MetricFamily] {
    Self.families(startTime: startTime) + [
      MetricFamily(
        "imageworker_running", .gauge, "Whether the worker runs; 0 in the last file that it writes.", isRunning ? 1 : 0),
      MetricFamily(
        "imageworker_snapshot_time_seconds", .gauge, "Unix time of these figures.", startTime + uptime / .seconds(1)),
    ] + process.families + requestFamilies + loader.families + transferFamilies + resolver.families + cacheFamilies
      + decoderFamilies
  }

  /// The metrics of a worker that has just started.
  static func families(startTime: Double) -> [MetricFamily] {
    [
      MetricFamily(
        "imageworker_build", .info, "Version of the worker, and of its protocol.",
        [MetricFamily.Sample(labels: [("version", Version.current), ("protocol", "1")], value: .integer(1))]),
      MetricFamily("imageworker_start_time_seconds", .gauge, "Unix time of the start of the worker.", startTime),
    ]
  }

  private var requestFamilies: [MetricFamily] {
    [
      MetricFamily("imageworker_output_backlog_bytes", .gauge, "Output that the host has not read.", outputBacklog),
      MetricFamily(
        "imageworker_requests_received", .counter, "Accepted loads and prefetches.", requests.received),
      MetricFamily(
        "imageworker_requests_answered", .counter, "Answered loads and prefetches, by outcome.", by: "outcome",
        [("succeeded", requests.succeeded), ("failed", requests.failed), ("cancelled", requests.cancelled)]),
    ]
  }

  private var transferFamilies: [MetricFamily] {
    let transfers = loader.transfers
    let (shown, other) = (transfers.busiestOrigins.shown, transfers.busiestOrigins.other)
    let origins = shown.map { ($0.origin.description, $0.counts) } + [("other", other)]
    return [
      MetricFamily(
        "imageworker_queue_waiting_loads", .gauge, "Loads and prefetch items that wait for a transfer, by priority.",
        by: "priority", Priority.allCases.map { ($0.name, loader.waiting[$0]) }),
      MetricFamily("imageworker_paused", .gauge, "Whether the host has paused the worker.", loader.isPaused ? 1 : 0),
      MetricFamily("imageworker_active_transfers", .gauge, "Transfers that run.", loader.active),
      MetricFamily("imageworker_transfer_window", .gauge, "Maximum number of running transfers.", loader.window),
      MetricFamily("imageworker_transfers_started", .counter, "Attempts that were started.", transfers.started),
      MetricFamily(
        "imageworker_transfers_ended", .counter, "Attempts that have ended, with or without a usable response.",
        by: "outcome", [("succeeded", transfers.succeeded), ("failed", transfers.failed)]),
      MetricFamily(
        "imageworker_transfer_retries", .counter, "Further attempts that were scheduled after a failed one.",
        transfers.retries),
      MetricFamily(
        "imageworker_received_bytes", .counter, "Bytes of bodies received, failed attempts included.", transfers.bytes),
      MetricFamily(
        "imageworker_origins", .gauge, "Origins that have loads or are suspended or down, by state.", by: "state",
        OriginState.Health.allCases.map { ($0.rawValue, loader.originCounts[$0, default: 0]) }),
      MetricFamily(
        "imageworker_origin_transfers_ended", .counter,
        "Attempts that have ended, for the busiest \(BusiestOrigins.maxShown) origins; all others are one.",
        origins.flatMap { origin, counts in
          [("succeeded", counts.succeeded), ("failed", counts.failed)].map { outcome, count in
            MetricFamily.Sample(labels: [("origin", origin), ("outcome", outcome)], value: .integer(Int64(count)))
          }
        }),
      MetricFamily(
        "imageworker_origin_received_bytes", .counter,
        "Bytes of bodies received, for the busiest \(BusiestOrigins.maxShown) origins; all others are one.",
        by: "origin", origins.map { ($0, $1.bytes) }),
    ]
  }

  private var cacheFamilies: [MetricFamily] {
    let (memory, disk) = (loader.memory, loader.disk)
    return [
      MetricFamily(
        "imageworker_saved_bytes", .counter, "Bytes of images that came from the cache.", loader.metrics.bytesSaved),
      MetricFamily("imageworker_memory_tier_entries", .gauge, "Images in the memory tier.", memory.entries),
      MetricFamily("imageworker_memory_tier_bytes", .gauge, "Bytes of the images in the memory tier.", memory.bytes),
      MetricFamily("imageworker_memory_tier_limit_bytes", .gauge, "The option memory-limit.", memory.limit),
      MetricFamily(
        "imageworker_memory_tier_evictions", .counter, "Images evicted from the memory tier.", memory.evicted),
      MetricFamily(
        "imageworker_disk_tier_entries", .gauge, "Images in the disk tier, of all workers that share it.",
        disk.entries),
      MetricFamily(
        "imageworker_disk_tier_bytes", .gauge, "Allocated bytes of the disk tier, of all workers that share it.",
        disk.bytes),
      MetricFamily("imageworker_disk_tier_limit_bytes", .gauge, "The option disk-limit.", disk.limit),
      MetricFamily(
        "imageworker_disk_tier_evictions", .counter, "Images that this worker evicted from the disk tier, by reason.",
        by: "reason",
        [
          ("limit", disk.evicted.limit), ("freeSpace", disk.evicted.freeSpace), ("diskFull", disk.evicted.diskFull),
        ]),
    ]
  }

  private var decoderFamilies: [MetricFamily] {
    let (decoders, pixels) = (loader.decoders, loader.pixels)
    return [
      MetricFamily(
        "imageworker_decoder_processes", .gauge, "Decoders, by activity.", by: "activity",
        [("busy", decoders.busy), ("idle", decoders.running - decoders.busy)]),
      MetricFamily("imageworker_decodes_waiting", .gauge, "Decodes that wait for a process.", decoders.waiting),
      MetricFamily(
        "imageworker_decodes_ended", .counter, "Decodes that have ended, by outcome.", by: "outcome",
        [("succeeded", decoders.decoded), ("failed", decoders.failed)]),
      MetricFamily(
        "imageworker_decoder_crashes", .counter, "Decoder processes that ended during a decode.", decoders.crashed),
      MetricFamily(
        "imageworker_decoder_timeouts", .counter, "Decodes that were ended with decodeTimeout.",
        decoders.timedOut),
      MetricFamily("imageworker_pixel_regions", .gauge, "Regions of pixels that the host holds.", pixels.regions),
      MetricFamily("imageworker_pixel_bytes", .gauge, "Bytes of the regions that the host holds.", pixels.bytes),
    ]
  }
}

extension ProcessFigures {
  fileprivate var families: [MetricFamily] {
    let descriptors = [
      ("imageworker_process_open_fds", "Open file descriptors.", openDescriptors),
      ("imageworker_process_max_fds", "Maximum number of open file descriptors.", maxDescriptors),
    ]
    return [
      MetricFamily(
        "imageworker_process_cpu_seconds", .counter, "Processor time of the worker, without its decoders.",
        processorSeconds),
      MetricFamily(
        "imageworker_process_resident_memory_bytes", .gauge, "Resident memory of the worker, without its decoders.",
        residentBytes),
    ] + descriptors.compactMap { name, help, value in value.map { MetricFamily(name, .gauge, help, $0) } }
  }
}

extension ResolverStatistics {
  /// Only the resolver of c-ares counts.
  fileprivate var families: [MetricFamily] {
    guard kind == .cAres else { return [] }
    return [
      MetricFamily("imageworker_resolver_known_names", .gauge, "Host names whose addresses are known.", names),
      MetricFamily("imageworker_resolver_waiting_names", .gauge, "Host names that wait for a query.", waiting),
      MetricFamily("imageworker_resolver_queries_in_flight", .gauge, "Queries without an answer yet.", inFlight),
      MetricFamily("imageworker_resolver_query_window", .gauge, "Maximum number of queries in flight.", window),
      MetricFamily("imageworker_resolver_lookups", .counter, "Host names that were looked up.", lookUps),
      MetricFamily("imageworker_resolver_queries", .counter, "Queries sent to name servers.", queries),
      MetricFamily(
        "imageworker_resolver_unanswered_lookups", .counter, "Lookups that no name server answered.", unanswered),
    ]
  }
}

extension Loader.Statistics {
  /// The families of the loads that have ended.
  fileprivate var families: [MetricFamily] {
    let failed = Dictionary(uniqueKeysWithValues: failures.map { ($0.kind, $0.count) })
    return [
      MetricFamily(
        "imageworker_load_duration_seconds", .histogram,
        "Time from the acceptance of a load to its end, by result. Items of prefetches included.",
        LoadMetrics.Ending.allCases.map {
          MetricFamily.Sample(labels: [("result", "\($0)")], value: .histogram(metrics[$0]))
        }),
      MetricFamily(
        "imageworker_load_phase_duration_seconds", .histogram,
        "Times of the phases of loads, which add up to the duration of the load.",
        LoadTimeline.Phase.allCases.map {
          MetricFamily.Sample(labels: [("phase", $0.name)], value: .histogram(metrics[$0]))
        }),
      MetricFamily(
        "imageworker_load_failures", .counter,
        "Loads that failed, by the kind of the error. Revalidations in the background included.", by: "kind",
        LoadError.Kind.allCases.filter { $0 != .cancelled }.map { ($0.rawValue, failed[$0, default: 0]) }),
    ]
  }
}
