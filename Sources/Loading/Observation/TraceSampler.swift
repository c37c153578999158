internal import Platform
internal import Tracing

/// Samples the counters of a trace at most ten times a second, and until they stand still.
struct TraceSampler {
  struct Figures: Equatable {
    var waiting = 0
    var active = 0
    var window = 0
    /// Bytes of bodies received and images answered from memory, since the start.
    var received: Int64 = 0
    var memoryHits = 0
    /// Bytes of image data in the memory tier, and the number of entries evicted from it.
    var inMemory: Int64 = 0
    var evicted = 0
  }

  /// The counters at a time.
  struct Sample: Sendable {
    var time: Instant
    var waiting, active, window: Int64
    /// Per second since the last sample.
    var bytesPerSecond, memoryHitsPerSecond: Int64
    var inMemory: Int64
    var evicted: Int64
  }

  static let interval = Duration.milliseconds(100)

  private var last = Figures()
  private var sampledAt: Instant?
  /// When the next sample is due; nil if the figures stand still.
  private(set) var next: Instant?

  func isDue(at now: Instant) -> Bool { sampledAt.map { now - $0 >= Self.interval } ?? true }

  /// Returns a sample; nil if no figure has changed since the one before.
  mutating func take(_ figures: Figures, at now: Instant) -> Sample? {
    let hasChanged = figures != last || sampledAt == nil
    // One more sample after the last change, in which the rates are zero.
    guard hasChanged || next != nil else { return nil }
    // After a pause, the first change has just happened.
    let elapsed = next == nil ? Self.interval : sampledAt?.duration(to: now) ?? Self.interval
    // The last sample of a trace may come right after the one before.
    let milliseconds = max(Self.interval, elapsed).milliseconds
    let sample = Sample(
      time: now, waiting: Int64(figures.waiting), active: Int64(figures.active), window: Int64(figures.window),
      bytesPerSecond: (figures.received - last.received) * 1000 / milliseconds,
      memoryHitsPerSecond: Int64(figures.memoryHits - last.memoryHits) * 1000 / milliseconds,
      inMemory: figures.inMemory, evicted: sampledAt == nil ? 0 : Int64(figures.evicted - last.evicted))
    (last, sampledAt) = (figures, now)
    next = hasChanged ? now.advanced(by: Self.interval) : nil
    return sample
  }
}

extension TraceSampler.Sample {
  func write(to writer: TraceWriter) {
    let (group, time) = (writer.worker, writer.time(time))
    writer.counter(TraceLabel("queue", "counter"), in: group, at: time, ["loads": .number(waiting)])
    writer.counter(TraceLabel("transfers", "counter"), in: group, at: time, ["active": .number(active)])
    writer.counter(TraceLabel("window", "counter"), in: group, at: time, ["transfers": .number(window)])
    writer.counter(TraceLabel("received", "counter"), in: group, at: time, ["bytesPerSecond": .number(bytesPerSecond)])
    writer.counter(
      TraceLabel("hits", "counter"), in: group, at: time, ["memoryHitsPerSecond": .number(memoryHitsPerSecond)])
    // The sum of both is the resident memory of the process.
    writer.counter(
      TraceLabel("memory", "counter"), in: group, at: time,
      ["images": .number(inMemory), "other": .number(max(0, residentBytes() - inMemory))])
    if evicted > 0 {
      writer.instant(
        TraceLabel("evicted from memory", "memory"), on: writer.row(.loading), at: time, scope: .row,
        ["count": .number(evicted)]
      )
    }
  }
}
