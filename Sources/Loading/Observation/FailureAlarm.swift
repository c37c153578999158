public import HTTPTypes
public import Platform

/// Notices that most loads fail, and that they no longer do. A pure value; the time is passed in.
///
/// It looks at the loads that ended in the last minute, which it keeps in six slices of ten seconds.
public struct FailureAlarm: Sendable {
  public enum Event: Sendable, Equatable {
    /// More than half of the loads of the last minute failed.
    ///
    /// - Parameters:
    ///   - kind: the commonest kind, with its number of failures.
    ///   - origin: the origin of the latest of these.
    case mostFail(failed: Int, ended: Int, kind: LoadError.Kind, count: Int, origin: Origin)
    /// At most half of the loads of the last minute failed, for the first time since `mostFail`.
    case over(failed: Int, ended: Int)
  }

  private struct Cause {
    var count = 0
    var origin: Origin
  }

  private struct Slice {
    var ended = 0
    var causes: [LoadError.Kind: Cause] = [:]

    var failed: Int { causes.values.reduce(0) { $0 + $1.count } }
  }

  static let minEnded = 20
  private static let sliceCount = 6
  private static let sliceTime = Duration.seconds(10)
  private static let pause = Duration.seconds(60)

  /// The last minute, the latest slice last.
  private var slices = [Slice()]
  private var nextSlice: Instant
  /// The time from which `mostFail` may be returned again; nil if the alarm is off.
  private var repeatsAt: Instant?
  private var hasChanged = false

  public init(now: Instant) { nextSlice = now.advanced(by: Self.sliceTime) }

  mutating func addSuccess() { slices[slices.count - 1].ended += 1 }

  mutating func add(_ kind: LoadError.Kind, at origin: Origin) {
    guard kind != .cancelled else { return }
    let last = slices.count - 1
    slices[last].ended += 1
    slices[last].causes[kind, default: Cause(origin: origin)].count += 1
    slices[last].causes[kind]?.origin = origin
    hasChanged = true
  }

  /// The time at which `check` must be called if nothing happens before; nil if it need not be.
  var nextCheck: Instant? { repeatsAt == nil ? nil : nextSlice }

  /// Must be called after loads have ended.
  mutating func check(at now: Instant) -> Event? {
    let isNewSlice = now >= nextSlice
    if isNewSlice { advance(to: now) }
    guard hasChanged || isNewSlice && repeatsAt != nil else { return nil }
    hasChanged = false
    let (ended, failed) = slices.reduce((0, 0)) { ($0.0 + $1.ended, $0.1 + $1.failed) }
    guard failed * 2 > ended else {
      guard repeatsAt.take() != nil else { return nil }
      return .over(failed: failed, ended: ended)
    }
    guard ended >= Self.minEnded, repeatsAt.map({ $0 <= now }) ?? true else { return nil }
    repeatsAt = now.advanced(by: Self.pause)
    return mostFail(failed: failed, ended: ended)
  }

  private mutating func advance(to now: Instant) {
    var added = 0
    while now >= nextSlice, added < Self.sliceCount {
      slices.append(Slice())
      nextSlice = nextSlice.advanced(by: Self.sliceTime)
      added += 1
    }
    // After a long time without a check.
    if now >= nextSlice { nextSlice = now.advanced(by: Self.sliceTime) }
    slices.removeFirst(max(0, slices.count - Self.sliceCount))
  }

  private func mostFail(failed: Int, ended: Int) -> Event? {
    var causes: [LoadError.Kind: Cause] = [:]
    for slice in slices {
      for (kind, cause) in slice.causes {
        causes[kind] = Cause(count: (causes[kind]?.count ?? 0) + cause.count, origin: cause.origin)
      }
    }
    let commonest = causes.max { ($0.value.count, $1.key.rawValue) < ($1.value.count, $0.key.rawValue) }
    return commonest.map { kind, cause in
      .mostFail(failed: failed, ended: ended, kind: kind, count: cause.count, origin: cause.origin)
    }
  }
}
