internal import HTTPTransport
internal import LineRPC
internal import Loading
internal import Platform

/// All figures of a worker at one time, for `stats` and for metrics.
struct WorkerFigures: Sendable {
  var loader: Loader.Statistics
  var resolver: ResolverStatistics
  var requests: Session.RequestCounts
  /// Unix seconds.
  var startTime: Double
  var uptime: Duration
  /// Bytes of output that the host has not read.
  var outputBacklog: Int
}

extension Session {
  /// Collects the figures by way of the disk thread and the transport's thread, none of which is blocked.
  func collectFigures(then completion: @escaping @LoadingActor @Sendable (WorkerFigures) -> Void) {
    loader.statistics { [weak self, transport] statistics in
      transport.resolverStatistics { resolver in
        LoadingActor.run {
          guard let self else { return }
          completion(
            WorkerFigures(
              loader: statistics, resolver: resolver ?? ResolverStatistics(kind: self.options.resolver),
              requests: self.counts, startTime: self.startTime, uptime: self.startedAt.duration(to: .now),
              outputBacklog: self.writer.backlog))
        }
      }
    }
  }
}

/// The resources that this process uses.
struct ProcessFigures: Sendable {
  /// The processor time of all threads, without that of the decoder processes.
  var processorSeconds: Double
  var residentBytes: Int64
  /// nil if the system does not tell it.
  var openDescriptors: Int?
  var maxDescriptors: Int?

  /// Reads them from the system. Takes longer the more descriptors are open.
  static func current() -> ProcessFigures {
    ProcessFigures(
      processorSeconds: Platform.processorSeconds(), residentBytes: Platform.residentBytes(),
      openDescriptors: openDescriptorCount(), maxDescriptors: descriptorLimit())
  }
}
