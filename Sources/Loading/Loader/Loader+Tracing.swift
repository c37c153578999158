internal import ImageStore

/// The state of the loader that a trace records.
extension Loader {
  var figures: TraceSampler.Figures {
    let memory = cache.memory.counts
    return TraceSampler.Figures(
      waiting: jobs.scheduler.waiting.total, active: jobs.scheduler.activeCount,
      window: jobs.scheduler.transfers.window.size, received: jobs.counts.bytes,
      memoryHits: observation.counts.memoryHits, inMemory: memory.bytes, evicted: memory.evicted)
  }

  /// Records the loads that have not ended, and the last counters, for a trace that is about to stop.
  public func completeTrace() {
    guard let trace else { return }
    trace.sampleLast(figures, at: LoadingActor.now)
    for load in registry.allLoads { trace.ended(TracedLoad(unfinished: load)) }
  }
}
