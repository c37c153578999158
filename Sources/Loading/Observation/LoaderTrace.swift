internal import HTTPTypes
public import ImageCodec
internal import ImageStore
public import Platform
public import Tracing

/// The trace of a loader, while one is recorded.
///
/// Each origin is a group of rows. A load that has ended is a span on a lane, with one span per phase. Its lookup and
/// its wait are in another group, because any number of loads may wait at a time. The worker itself is a group with a
/// row per thread. Records are made into events on the thread of the trace.
@LoadingActor
public final class LoaderTrace {
  public nonisolated let recorder: TraceRecorder
  private var sampler = TraceSampler()

  public nonisolated init(_ recorder: TraceRecorder) { self.recorder = recorder }

  func ended(_ load: TracedLoad) { recorder.add { load.write(to: $0) } }

  /// Records the counters if they are due.
  ///
  /// - Returns: when the next ones are due; nil if nothing has changed since the last.
  func sample(_ figures: @autoclosure () -> TraceSampler.Figures, at now: Instant)
    -> Instant?
  {
    if sampler.isDue(at: now), let sample = sampler.take(figures(), at: now) { recorder.add { sample.write(to: $0) } }
    return sampler.next
  }

  func sampleLast(_ figures: TraceSampler.Figures, at now: Instant) {
    if let sample = sampler.take(figures, at: now) { recorder.add { sample.write(to: $0) } }
  }

  func retrying(_ request: LoadRequest, attempt: Int, delay: Duration, after error: LoadError) {
    let (now, source, origin) = (Instant.now, request.source, request.origin)
    recorder.add { writer in
      writer.instant(
        TraceLabel("retry", "origin"), on: writer.eventRow(of: origin), at: writer.time(now), scope: .row,
        [
          "url": .text(source.redacted), "attempt": .number(Int64(attempt)), "delayMs": .number(delay.milliseconds),
          "error": .text(error.kind.rawValue),
        ])
    }
  }

  /// Records a change of an origin's health, as a line across its rows.
  public func healthChanged(_ state: OriginState) {
    let now = Instant.now
    recorder.add { writer in
      let arguments = TraceArguments { arguments in
        arguments.append("window", Int64(state.window))
        if let reason = state.reason { arguments.append("reason", reason.rawValue) }
        if let until = state.heldUntil {
          arguments.append("heldMs", max(0, now.duration(to: until).milliseconds))
        }
      }
      writer.instant(
        TraceLabel(text: state.health.rawValue, "origin"), on: writer.eventRow(of: state.origin),
        at: writer.time(now), scope: .group, arguments)
    }
  }

  /// Records a task of a decoder process. May be called on any thread.
  public nonisolated func decoderWorked(_ activity: DecoderActivity) {
    recorder.add { writer in
      writer.span(
        TraceLabel(activity.task, "decoder", color: activity.hasFailed ? "terrible" : nil),
        on: writer.row(.decoder(activity.decoder)), from: writer.time(activity.start), to: writer.time(activity.end))
    }
  }

  /// Records a batch of work on the loading thread, if it was long enough for other work to wait for it.
  public func loadingThreadWorked(from start: Instant, to end: Instant) {
    guard start.duration(to: end) >= .milliseconds(1) else { return }
    recorder.add {
      $0.span(.batch, on: $0.row(.loading), from: $0.time(start), to: $0.time(end))
    }
  }
}

extension TraceRecorder {
  /// Records work on the disk thread, unless it is shorter than 10 µs.
  func diskWorked(_ label: TraceLabel, from start: Instant, to end: Instant) {
    guard start.duration(to: end) >= .microseconds(10) else { return }
    add { $0.span(label, on: $0.row(.disk), from: $0.time(start), to: $0.time(end)) }
  }

  /// Records entries that were evicted from the disk tier.
  func evictedFromDisk(_ count: Int) {
    let now = Instant.now
    add {
      $0.instant(
        TraceLabel("evicted", "disk"), on: $0.row(.disk), at: $0.time(now), scope: .row,
        ["count": .number(Int64(count))])
    }
  }
}

/// The work of the disk thread, and batches of work.
extension TraceLabel {
  static let lookUp = TraceLabel("look up", "disk")
  static let store = TraceLabel("store", "disk")
  static let keepVariant = TraceLabel("keep variant", "disk")
  static let deliver = TraceLabel("deliver", "disk")
  static let prepareDecode = TraceLabel("prepare decode", "disk")
  static let revalidate = TraceLabel("revalidate", "disk")
  static let resume = TraceLabel("resume", "disk")
  static let clear = TraceLabel("clear", "disk")
  static let maintenance = TraceLabel("maintenance", "disk")
  static let batch = TraceLabel("batch", "thread")
}

/// The rows of the worker's own threads and processes.
enum WorkerRow {
  case loading, disk
  case decoder(Int)
}

extension TraceWriter {
  func row(_ row: WorkerRow) -> TraceRow {
    switch row {
    case .loading: self.row(2, named: "loading thread", in: worker)
    case .disk: self.row(3, named: "disk thread", in: worker)
    case .decoder(let number): self.row(10 + number, named: "decoder \(number)", in: worker)
    }
  }

  func group(of origin: Origin) -> TraceGroup {
    let key = TraceGroupKey(origin.host, origin.port << 1 | (origin.scheme == "https" ? 1 : 0))
    return group(key, named: origin.description)
  }

  func eventRow(of origin: Origin) -> TraceRow { row(1, named: "events", in: group(of: origin)) }

  /// The row for the waits of an origin's loads. It may be high, and is therefore in a group after those of the origins.
  func waitingRow(of group: TraceGroup, _ origin: Origin) -> TraceRow {
    row(1, named: "waiting", in: companion(of: group, named: "\(origin), waiting"))
  }
}

extension LoadRequest.Source {
  /// The URL as a trace may show it: without user info and query. Nothing but the scheme is left of a `data:` URL.
  var redacted: String {
    switch self {
    case .http(let url): url.redacted
    case .inline: "data:"
    case .file(let place): place.url
    }
  }
}

/// The state of the loader that a trace records.
extension Loader {
  var figures: TraceSampler.Figures {
    let memory = cache.memory.counts
    return TraceSampler.Figures(
      waiting: jobs.scheduler.waiting.total, active: jobs.scheduler.activeCount,
      window: jobs.scheduler.transfers.window.size, received: coordinator.transfers.counts.bytes,
      memoryHits: observation.metrics[.memory].count, inMemory: memory.bytes, evicted: memory.evicted)
  }

  /// Records the loads that have not ended, and the last counters, for a trace that is about to stop.
  public func completeTrace() {
    guard let trace else { return }
    trace.sampleLast(figures, at: .now)
    for load in registry.allLoads { trace.ended(TracedLoad(unfinished: load)) }
  }
}
