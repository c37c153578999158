internal import HTTPTransport
public import Platform

/// The phases of a load. They follow each other from the acceptance of the load to its end, so their durations add up
/// to its total. A pure value without references. All times are in microseconds since the acceptance.
///
/// A load that joins a running transfer has the part of each phase since then. If something has to be repeated (a
/// failed attempt, a source that was lost), all the time since the cache lookup counts as waiting, and the later phases
/// start over: those of the last attempt remain.
public struct LoadTimeline: Sendable {
  /// In the order in which a load passes them.
  public enum Phase: Int, Sendable, CaseIterable {
    case lookup
    /// The queue, holds of the origin, delays, another worker's transfer, and attempts that failed.
    case wait
    case name, connect, tls
    /// From the request to the first byte of the response; also the redirects before it.
    case request
    case body
    case store
    /// The wait for a decoder, and the preparation of its input.
    case decodeWait
    case decode
    /// The delivery of a path, of data or of a copy; also the storing of a transform's result.
    case deliver

    /// The name of its member of `timing`.
    public var member: StaticString {
      switch self {
      case .lookup: "lookupMs"
      case .wait: "waitMs"
      case .name: "dnsMs"
      case .connect: "connectMs"
      case .tls: "tlsMs"
      case .request: "requestMs"
      case .body: "bodyMs"
      case .store: "storeMs"
      case .decodeWait: "decodeWaitMs"
      case .decode: "decodeMs"
      case .deliver: "deliverMs"
      }
    }

    /// The name in traces and metrics: that of the member without `Ms`.
    public var name: String { String("\(member)".dropLast(2)) }
  }

  public let acceptedAt: Instant
  /// The current phase; the last one if the load has ended.
  public private(set) var phase: Phase
  /// The start of the first attempt; nil if there was none.
  public private(set) var queued: Int64?
  /// The start of the current phase; the end of the load if it has ended.
  private var began: Int64 = 0
  private var durations: Durations = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
  /// The set of phases that happened, as bits.
  private var happened: UInt16 = 0

  /// One duration per phase.
  private typealias Durations = (Int64, Int64, Int64, Int64, Int64, Int64, Int64, Int64, Int64, Int64, Int64)

  public init(acceptedAt: Instant, in phase: Phase = .lookup) {
    (self.acceptedAt, self.phase) = (acceptedAt, phase)
    mark(phase)
  }

  // MARK: - Reading

  /// The duration of a phase; nil if it did not happen. The current phase counts when it has ended.
  public subscript(phase: Phase) -> Int64? { has(phase) ? withUnsafeBytes(of: durations) { $0[phase] } : nil }

  /// The sum of all phases that have ended.
  public var total: Int64 { began }

  /// The first byte of the response; nil if the load did not wait for a transfer.
  public var firstByte: Int64? {
    guard has(.request) || has(.body) else { return nil }
    return (Phase.lookup.rawValue...Phase.request.rawValue).reduce(0) { $0 + (self[Phase(rawValue: $1)!] ?? 0) }
  }

  /// Calls `body` with each phase that happened, its start and its end, in their order.
  public func forEachInterval(_ body: (Phase, _ start: Int64, _ end: Int64) -> Void) {
    var start: Int64 = 0
    for phase in Phase.allCases {
      guard let duration = self[phase] else { continue }
      body(phase, start, start + duration)
      start += duration
    }
  }

  // MARK: - Recording

  /// Begins a phase. A time before the start of the current phase counts as that start.
  mutating func enter(_ new: Phase, at time: Instant) {
    guard new != phase else { return }
    closePhase(at: time)
    phase = new
    mark(new)
  }

  mutating func end(at time: Instant) { closePhase(at: time) }

  /// Begins an attempt, which counts as `request` until `transferred` divides it.
  ///
  /// - Parameter name: the duration of a name lookup during the wait.
  mutating func attemptStarted(at time: Instant, name: Duration? = nil) {
    enter(.request, at: time)
    queued = queued ?? began
    guard let name, let waited = self[.wait] else { return }
    let moved = min(name.microseconds, waited)
    add(-moved, to: .wait)
    add(moved, to: .name)
    mark(.name)
  }

  /// Divides the time since the start of the attempt, or since the load joined it.
  ///
  /// - Parameter hasBody: whether the response may have a body; a 304 has none.
  mutating func transferred(_ times: TransferTimes, hasBody: Bool) {
    let (joined, end) = (began, offset(of: times.endedAt))
    // Earlier requests of the same attempt keep theirs.
    if self[.request] == 0 { happened &= ~Self.bit(.request) }
    /// Ends a step. It did not happen for a load that joined later.
    func close(_ step: Phase, at time: Int64) {
      guard time >= joined else { return }
      add(max(0, min(time, end) - began), to: step)
      began = max(began, min(time, end))
      phase = step
      mark(step)
    }
    let started = offset(of: times.startedAt)
    if started > began { close(times.redirects > 0 ? .request : .wait, at: started) }
    if let name = times.name { close(.name, at: started + name.microseconds) }
    let sent = times.requestSentAt.map { offset(of: $0) } ?? end
    let (connect, tls) = (times.connect?.microseconds ?? 0, times.tls?.microseconds ?? 0)
    // The request waited for a connection.
    if min(sent, end) - connect - tls > began { close(.wait, at: sent - connect - tls) }
    if times.connect != nil { close(.connect, at: sent - tls) }
    if times.tls != nil { close(.tls, at: sent) }
    guard times.requestSentAt != nil else { return }
    guard hasBody, let answered = times.firstByteAt else { return close(.request, at: end) }
    close(.request, at: offset(of: answered))
    close(.body, at: end)
  }

  /// Divides the time since the load began to wait for a decode, which has ended.
  ///
  /// - Parameter start: the time at which a decoder got the task; nil if none did.
  mutating func decoded(from start: Instant?, to end: Instant) {
    if let start { enter(.decode, at: start) }
    closePhase(at: end)
  }

  /// Returns to waiting: what has happened since the cache lookup will happen again.
  mutating func restart(at time: Instant) {
    closePhase(at: time)
    let lookup = self[.lookup] ?? 0
    durations = (lookup, began - lookup, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    happened = Self.bit(.lookup) | Self.bit(.wait)
    phase = .wait
  }

  // MARK: - Storage

  private static func bit(_ phase: Phase) -> UInt16 { 1 << UInt16(phase.rawValue) }

  private func has(_ phase: Phase) -> Bool { happened & Self.bit(phase) != 0 }

  private mutating func mark(_ phase: Phase) { happened |= Self.bit(phase) }

  private mutating func add(_ duration: Int64, to phase: Phase) {
    withUnsafeMutableBytes(of: &durations) { $0[phase] += duration }
  }

  private mutating func closePhase(at time: Instant) {
    let now = max(began, offset(of: time))
    add(now - began, to: phase)
    began = now
  }

  private func offset(of time: Instant) -> Int64 { acceptedAt.duration(to: time).microseconds }
}

extension UnsafeRawBufferPointer {
  fileprivate subscript(phase: LoadTimeline.Phase) -> Int64 {
    load(fromByteOffset: phase.rawValue * MemoryLayout<Int64>.stride, as: Int64.self)
  }
}

extension UnsafeMutableRawBufferPointer {
  fileprivate subscript(phase: LoadTimeline.Phase) -> Int64 {
    get { load(fromByteOffset: phase.rawValue * MemoryLayout<Int64>.stride, as: Int64.self) }
    nonmutating set {
      storeBytes(of: newValue, toByteOffset: phase.rawValue * MemoryLayout<Int64>.stride, as: Int64.self)
    }
  }
}

extension Duration {
  /// The whole microseconds, rounded towards zero.
  var microseconds: Int64 {
    let (seconds, attoseconds) = components
    return seconds * 1_000_000 + attoseconds / 1_000_000_000_000
  }
}
