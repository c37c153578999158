import HTTPTypes
import Platform
import Testing

@testable import Loading

/// The decision that most loads fail, with a clock that the tests advance.
struct FailureAlarmTests {
  private static let origins = (
    a: Origin(scheme: "http", host: "a", port: 80), b: Origin(scheme: "http", host: "b", port: 80)
  )

  /// An alarm and its clock.
  private struct Scene {
    private let start = Instant.now
    private(set) var alarm: FailureAlarm
    private var seconds = 0

    init() { alarm = FailureAlarm(now: start) }

    mutating func succeed(_ count: Int) { for _ in 0..<count { alarm.addSuccess() } }

    mutating func fail(_ count: Int, _ kind: LoadError.Kind = .connect, at origin: Origin = origins.a) {
      for _ in 0..<count { alarm.add(kind, at: origin) }
    }

    mutating func check(at second: Int) -> FailureAlarm.Event? { alarm.check(at: start + .seconds(second)) }

    func time(_ second: Int) -> Instant { start + .seconds(second) }
  }

  @Test func `it says so at once if more than half of 20 loads fail`() {
    var scene = Scene()
    scene.succeed(9)
    scene.fail(10)
    #expect(scene.check(at: 1) == nil)
    scene.fail(1)
    #expect(scene.check(at: 1) == .mostFail(failed: 11, ended: 20, kind: .connect, count: 11, origin: Self.origins.a))
  }

  @Test func `half is not most`() {
    var scene = Scene()
    scene.succeed(50)
    scene.fail(50)
    #expect(scene.check(at: 1) == nil)
    scene.fail(1)
    #expect(scene.check(at: 1) != nil)
  }

  @Test func `it names the commonest kind of the minute with its latest origin`() {
    var scene = Scene()
    scene.fail(9, .timeout, at: Self.origins.b)
    #expect(scene.check(at: 5) == nil)
    scene.fail(4, .connect, at: Self.origins.b)
    #expect(scene.check(at: 15) == nil)
    scene.fail(8, .connect, at: Self.origins.a)
    #expect(scene.check(at: 25) == .mostFail(failed: 21, ended: 21, kind: .connect, count: 12, origin: Self.origins.a))
  }

  @Test func `loads that ended more than a minute ago do not count`() {
    var scene = Scene()
    scene.fail(15)
    #expect(scene.check(at: 1) == nil)
    _ = scene.check(at: 70)
    scene.fail(19)
    #expect(scene.check(at: 71) == nil)
    scene.fail(1)
    #expect(scene.check(at: 71) == .mostFail(failed: 20, ended: 20, kind: .connect, count: 20, origin: Self.origins.a))
  }

  @Test func `it repeats itself once a minute`() {
    var scene = Scene()
    scene.fail(20)
    #expect(scene.check(at: 0) != nil)
    for second in 1..<60 {
      scene.fail(20)
      #expect(scene.check(at: second) == nil)
    }
    scene.fail(20)
    #expect(scene.check(at: 60) != nil)
    scene.fail(20)
    #expect(scene.check(at: 61) == nil)
  }

  @Test func `it says when it is over`() {
    var scene = Scene()
    scene.fail(20)
    #expect(scene.check(at: 0) != nil)
    scene.succeed(20)
    #expect(scene.check(at: 5) == nil, "it looks again at the next slice")
    #expect(scene.alarm.nextCheck == scene.time(10))
    #expect(scene.check(at: 10) == .over(failed: 20, ended: 40))
    #expect(scene.alarm.nextCheck == nil)
    #expect(scene.check(at: 20) == nil)
    scene.fail(21)
    #expect(scene.check(at: 21) != nil, "it may begin again")
  }

  @Test func `it is over if no load ends any more`() {
    var scene = Scene()
    scene.fail(20)
    #expect(scene.check(at: 1) != nil)
    #expect(scene.check(at: 50) == nil)
    #expect(scene.check(at: 60) == .over(failed: 0, ended: 0))
  }

  @Test func `after a long sleep it looks only at what is new`() {
    var scene = Scene()
    scene.fail(20)
    #expect(scene.check(at: 1) != nil)
    #expect(scene.check(at: 100_000) == .over(failed: 0, ended: 0))
    scene.fail(19)
    #expect(scene.check(at: 100_001) == nil)
    #expect(scene.check(at: 100_030) == nil)
    scene.fail(1)
    #expect(scene.check(at: 100_031) != nil)
  }

  @Test func `cancelled loads have not ended`() {
    var scene = Scene()
    scene.fail(100, .cancelled)
    scene.fail(19)
    #expect(scene.check(at: 1) == nil)
  }
}
