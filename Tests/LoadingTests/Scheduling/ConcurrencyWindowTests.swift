import Platform
import Testing

@testable import Loading

struct ConcurrencyWindowTests {
  private typealias Bounds = ConcurrencyWindow.Bounds
  private static let auto = Bounds(initial: 6, max: 256)

  // MARK: - Opening and holding

  @Test(arguments: [
    (delay: 0.1, max: 256, sizes: [6, 12, 24, 48, 96, 192]),
    // If transfers take long, a window with the full gain triples.
    (delay: 0.3, max: 256, sizes: [6, 12, 36, 108, 256]),
    (delay: 0.1, max: 40, sizes: [6, 12, 24, 40]),
  ])
  func `the window opens while the throughput grows with it`(delay: Double, max: Int, sizes: [Int]) {
    var host = Host(Bounds(initial: 6, max: max))
    (host.delay, host.jitter) = (delay, 0)
    host.run(seconds: 4)
    #expect(host.sizes.starts(with: sizes), "\(host.sizes)")
  }

  @Test(arguments: [8, 16, 64]) func `the window holds at the plateau`(capacity: Int) {
    var host = Host(Self.auto, capacity: capacity)
    host.run(seconds: 5)
    let sizes = host.run(seconds: 30)
    #expect((capacity...capacity * 3 / 2).contains(sizes.median))
    // A probe may show a gain by chance, and the window then opens once more.
    #expect(sizes.share(within: capacity * 3 / 4...capacity * 3 / 2) > 0.8)
    #expect(sizes.max()! <= 3 * capacity)
  }

  @Test(arguments: [1, 2, 3]) func `the window shrinks if it started larger than the plateau`(capacity: Int) {
    var host = Host(Bounds(initial: 16, max: 256), capacity: capacity)
    host.run(seconds: 20)
    #expect(host.run(seconds: 30).median <= 2 * capacity)
  }

  @Test func `probes of larger windows become rarer if they show no gain`() {
    var host = Host(Self.auto, capacity: 40)
    host.run(seconds: 1.5)
    let early = host.run(seconds: 2.5).rises
    host.run(seconds: 20)
    #expect(host.run(seconds: 2.5).rises < early)
    #expect(host.run(seconds: 10).rises > 0)
  }

  // MARK: - Changes of the host

  @Test(arguments: 1...5)
  func `the window follows the capacity of the host down and up`(seed: UInt64) {
    var host = Host(Self.auto, capacity: 16, seed: seed)
    host.run(seconds: 10)
    host.serve(4)
    host.run(seconds: 2)
    #expect((3...8).contains(host.run(seconds: 5).median))
    host.serve(16)
    host.run(seconds: 5)
    #expect(host.run(seconds: 3).median >= 14)
  }

  @Test func `the window keeps its size when each transfer takes longer and all are needed`() {
    var host = Host(Bounds(initial: 6, max: 40))
    host.run(seconds: 5)
    host.delay = 0.25
    #expect(host.run(seconds: 15).share(within: 36...40) > 0.85)
  }

  // MARK: - Rounds

  @Test func `rounds in which the window was not full are ignored`() {
    var host = Host(Self.auto)
    host.waiting = 5
    host.run(seconds: 30)
    #expect(host.sizes == [6])
    host.waiting = .max
    host.run(seconds: 0.5)
    #expect(host.window.size > 6)
  }

  @Test func `a probe ends without a result if the window is not full`() {
    var host = Host(Self.auto, capacity: 40)
    host.run(seconds: 5)
    while host.window.size < 48 { host.answer() }
    host.waiting = 20
    let sizes = host.run(seconds: 20)
    #expect(sizes.last == 44)
    #expect(Set(sizes.suffix(1000)) == [44])
  }

  // MARK: - Refusals

  @Test(arguments: [
    (size: 16, active: 16, halved: 8, largest: 15),
    // It shrinks from the number of running transfers, not from its size.
    (size: 16, active: 10, halved: 5, largest: 9),
    // Transfers that ran before it shrank do not count.
    (size: 16, active: 30, halved: 8, largest: 15),
    (size: 3, active: 3, halved: 1, largest: 2),
  ])
  func `a refusal halves the window, and the refused size is not tried again for thirty seconds`(
    size: Int, active: Int, halved: Int, largest: Int
  ) {
    var host = Host(Bounds(initial: size, max: 256))
    host.window.refused(active: active, at: host.now)
    #expect(host.window.size == halved)
    #expect(host.window.isRefused)
    let sizes = host.run(seconds: 29.5)
    #expect(sizes.max() == largest)
    #expect(sizes.last == largest)
    host.run(seconds: 3)
    #expect(host.window.size > largest)
  }

  @Test func `the refusal of a single transfer is not remembered`() {
    var host = Host(Bounds(initial: 16, max: 256))
    host.window.refused(active: 1, at: host.now)
    #expect(host.window.size == 1)
    #expect(host.window.isRefused)
    host.run(seconds: 10)
    #expect(host.window.size > 16)
    #expect(!host.window.isRefused)
  }

  @Test func `no probe tries the refused size`() {
    var host = Host(Bounds(initial: 16, max: 256), capacity: 12)
    host.window.refused(active: 16, at: host.now)
    #expect(host.run(seconds: 29.5).max()! == 15)
    #expect(host.sizes.count > 10)
  }

  @Test func `after a refusal the window grows by an eighth each round, and at least by one`() {
    var host = Host(Bounds(initial: 40, max: 256))
    host.window.refused(active: 40, at: host.now)
    host.run(seconds: 20)
    #expect(host.sizes.starts(with: [40, 20, 22, 24, 27, 30, 33, 37, 39]))
    host = Host(Bounds(initial: 6, max: 256))
    host.window.refused(active: 6, at: host.now)
    host.run(seconds: 20)
    #expect(host.sizes.starts(with: [6, 3, 4, 5]))
  }

  @Test func `each refusal is remembered for twice as long as the one before, up to ten minutes`() {
    var host = Host(Bounds(initial: 4, max: 6))
    host.delay = 0.5
    host.run(seconds: 5)
    for memory in [30.0, 60, 120, 240, 480, 600, 600] {
      #expect(host.window.size == 6)
      host.window.refused(active: 6, at: host.now)
      #expect(host.run(seconds: memory - 1).max() == 5)
      #expect(host.run(seconds: 30).max() == 6, "after \(memory) s")
      while host.window.size < 6 { host.answer() }
    }
  }

  @Test func `answers to transfers that started before a refusal do not enlarge the window`() {
    var window = ConcurrencyWindow(Bounds(initial: 64, max: 256))
    let now = Instant.now
    for _ in 0..<64 { window.started(at: now) }
    window.refused(active: 64, at: now)
    for number in 0..<63 { window.answered(active: 63 - number, at: now.advanced(by: .milliseconds(number))) }
    #expect(window.size == 32)
  }

  // MARK: - Bounds

  @Test(arguments: [1, 6, 64]) func `a fixed window keeps its size`(size: Int) {
    for capacity in [6, nil] {
      var host = Host(.fixed(size), capacity: capacity)
      #expect(Set(host.run(seconds: 10)) == [size])
      #expect(!host.window.hasLearned)
    }
  }

  @Test func `a fixed window shrinks after a refusal, and has its size again after thirty seconds`() {
    var host = Host(.fixed(16))
    host.window.refused(active: 16, at: host.now)
    #expect(host.window.size == 8)
    let sizes = host.run(seconds: 29.5)
    #expect(sizes.max() == 15)
    host.run(seconds: 1)
    #expect(host.window.size == 16)
    #expect(Set(host.run(seconds: 30)) == [16])
  }

  @Test(arguments: [
    (from: auto, to: Bounds(initial: 6, max: 20), size: 20),
    (from: auto, to: Bounds(initial: 100, max: 200), size: 100),
    (from: auto, to: Bounds(initial: 6, max: 512), size: 48),
    (from: auto, to: .fixed(4), size: 4),
    (from: auto, to: .fixed(100), size: 100),
    (from: .fixed(48), to: auto, size: 48),
    (from: .fixed(48), to: Bounds(initial: 1, max: 8), size: 8),
  ])
  private func `the window keeps its size as far as new bounds permit`(from: Bounds, to: Bounds, size: Int) {
    var host = Host(from)
    while host.window.size != 48 { host.answer() }
    host.window.setBounds(to)
    #expect(host.window.size == size)
    #expect(host.run(seconds: 30).allSatisfy { $0 <= to.max })
    #expect(host.window.size == to.max)
  }

  @Test func `new bounds do not permit the refused size`() {
    for bounds in [Bounds(initial: 100, max: 200), .fixed(100)] {
      var host = Host(Bounds(initial: 16, max: 256))
      host.window.refused(active: 16, at: host.now)
      host.window.setBounds(bounds)
      #expect(host.run(seconds: 29.5).allSatisfy { $0 < 16 })
      host.run(seconds: 10)
      #expect(host.window.size >= 100)
    }
  }

  @Test func `the same bounds change nothing`() {
    var host = Host(Self.auto, capacity: 40)
    host.run(seconds: 5)
    var same = host
    for _ in 0..<1000 {
      same.window.setBounds(Self.auto)
      host.answer()
      same.answer()
    }
    #expect(host.sizes == same.sizes)
  }

  // MARK: - Any events in any order

  @Test(arguments: 0..<10)
  func `the window stays within its bounds and below the refused size under random events`(seed: UInt64) {
    var random = SeededChance(state: seed)
    var bounds = Bounds(initial: 6, max: 256)
    var window = ConcurrencyWindow(bounds)
    var now = Instant.now
    var refusal: (size: Int, until: Instant)?
    for _ in 0..<4000 {
      now = now.advanced(by: .milliseconds(Int.random(in: 0...9, using: &random)))
      let size = window.size
      let active = max(1, size + Int.random(in: -2...2, using: &random))
      switch Int.random(in: 0..<1000, using: &random) {
      case 0..<2:
        window.refused(active: active, at: now)
        if min(active, size) > 1 { refusal = (min(active, size), now.advanced(by: .seconds(30))) }
      case 2..<4:
        let initial = Int.random(in: 1...64, using: &random)
        bounds = Bounds(initial: initial, max: initial + [0, 1, 100].randomElement(using: &random)!)
        window.setBounds(bounds)
      case 4..<6: now = now.advanced(by: .seconds(Int.random(in: 0...60, using: &random)))
      case 6..<500: window.started(at: now)
      default: window.answered(active: active, at: now)
      }
      #expect((1...bounds.max).contains(window.size))
      if let refusal, now < refusal.until { #expect(window.size < refusal.size) }
    }
  }
}

/// A simulated host behind a window, with an unlimited supply of loads.
private struct Host {

  var window: ConcurrencyWindow
  private(set) var now = Instant.now
  /// The duration of an answer in seconds, and the fraction by which it varies.
  var (delay, jitter) = (0.1, 0.2)
  /// The limit of running transfers, even if the window permits more.
  var waiting = Int.max
  /// The sizes that the window has had.
  private(set) var sizes: [Int]
  /// When each serving slot of the host is free; nil if it serves any number.
  private var serversFreeAt: [Instant]?
  /// The answer times of the running transfers, in descending order.
  private var answers: [Instant] = []
  private var random: SeededChance

  init(_ bounds: ConcurrencyWindow.Bounds, capacity: Int? = nil, seed: UInt64 = 1) {
    random = SeededChance(state: seed)
    window = ConcurrencyWindow(bounds)
    sizes = [window.size]
    serversFreeAt = capacity.map { Array(repeating: now, count: $0) }
  }

  /// Sets the capacity of the host from now on.
  mutating func serve(_ capacity: Int) {
    serversFreeAt = (0..<capacity).map { index in serversFreeAt.map { index < $0.count ? $0[index] : now } ?? now }
  }

  /// Advances to the next answer.
  mutating func answer() {
    start()
    now = answers.removeLast()
    window.answered(active: answers.count + 1, at: now)
    noteSize()
  }

  /// - Returns: the size of the window after each answer.
  @discardableResult
  mutating func run(seconds: Double) -> [Int] {
    noteSize()
    let end = now.advanced(by: .seconds(seconds))
    var sizes: [Int] = []
    while now < end {
      answer()
      sizes.append(window.size)
    }
    return sizes
  }

  private mutating func noteSize() {
    if window.size != sizes.last { sizes.append(window.size) }
  }

  private mutating func start() {
    while answers.count < min(window.size, waiting) || answers.isEmpty {
      window.started(at: now)
      let time = Duration.seconds(delay * (1 + Double.random(in: -jitter...jitter, using: &random)))
      let server = serversFreeAt.map { times in times.indices.min { times[$0] < times[$1] }! }
      let end = max(now, server.map { serversFreeAt![$0] } ?? now).advanced(by: time)
      if let server { serversFreeAt![server] = end }
      answers.insert(end, at: answers.firstIndex { $0 <= end } ?? answers.count)
    }
  }
}

extension [Int] {
  fileprivate var median: Int { sorted()[count / 2] }
  fileprivate func share(within range: ClosedRange<Int>) -> Double {
    Double(count(where: range.contains)) / Double(count)
  }
  /// The number of increases in a sequence.
  fileprivate var rises: Int { zip(self, dropFirst()).count { $0 < $1 } }
}
