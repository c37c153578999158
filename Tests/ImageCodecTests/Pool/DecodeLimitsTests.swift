import Platform
import Testing

@testable import ImageCodec

struct DecodeLimitsTests {
  private static let start = Instant.now
  private let limits = DecodeLimits(
    start: start, usedBefore: .seconds(5), processorTime: .seconds(10), elapsedTime: .seconds(100), processors: 4)

  /// Cases in seconds: the elapsed time, the processor time of the process with that of earlier images, and the elapsed
  /// time of the next check.
  @Test(
    arguments: [
      (0.0, nil, 2.5), (2.5, nil, 5), (0, 5, 2.5), (2.5, 5, 5), (2.5, 15 - 4, 3.5), (99, 5, 100), (99, 14.9, 99.025),
      // Just before the limit, not too soon.
      (50, 14.999, 50.01), (50, 14.999999, 50.01),
      // The time of another process, which cannot be true.
      (2.5, 1, 5),
    ] as [(Double, Double?, Double)])
  func `the next check is at the earliest time at which a limit can be reached`(
    elapsed: Double, used: Double?, next: Double
  ) {
    let verdict = limits.check(at: Self.start + .seconds(elapsed), used: used.map { .seconds($0) })
    guard case .within(let time) = verdict else { return #expect(Bool(false), "\(verdict)") }
    let difference = (time - Self.start) - .seconds(next)
    #expect(max(difference, .zero - difference) < .microseconds(1))
  }

  @Test(
    arguments: [
      (3.0, 15.0, DecodeTimeout.Limit.processorTime), (3, 20, .processorTime), (100, nil, .elapsedTime),
      (100, 5, .elapsedTime), (200, 14.9, .elapsedTime),
      // Whatever the reason for a late check is, the image used all its processor time.
      (200, 15, .processorTime),
    ] as [(Double, Double?, DecodeTimeout.Limit)])
  func `a decode is ended at its processor time, or else at its elapsed time`(
    elapsed: Double, used: Double?, limit: DecodeTimeout.Limit
  ) {
    let verdict = limits.check(at: Self.start + .seconds(elapsed), used: used.map { .seconds($0) })
    let timeout = DecodeTimeout(
      limit, processorTime: used.map { .seconds($0) - .seconds(5) }, elapsedTime: .seconds(elapsed))
    #expect(verdict == .exceeded(timeout))
  }

  @Test(arguments: [(10, 100), (1, 60), (0, 60), (6, 60), (7, 70)])
  func `the limit of elapsed time is ten times that of processor time, and at least a minute`(
    timeout: Int, elapsed: Int
  ) {
    #expect(DecoderSettings(count: 1, timeout: .seconds(timeout)).elapsedLimit == .seconds(elapsed))
  }
}
