import Testing

@testable import HTTPTransport

@Suite struct QueryWindowTests {
  private func fill(_ window: inout QueryWindow) {
    while !window.isFull { window.sent() }
  }

  @Test func `the window grows while it is full and queries are answered, up to a limit`() {
    var window = QueryWindow()
    #expect(window.size == 64)
    for _ in 0..<160 {
      fill(&window)
      window.answered(losses: 0)
    }
    #expect(window.size == 74)
    for _ in 0..<20_000 {
      fill(&window)
      window.answered(losses: 0)
    }
    #expect(window.size == 1_000)
  }

  @Test func `the window does not grow while it is not full`() {
    var window = QueryWindow()
    for _ in 0..<10_000 {
      window.sent()
      window.answered(losses: 0)
    }
    #expect(window.size == 64)
    #expect(window.inFlight == 0)
  }

  @Test func `each lost query shrinks the window down to a limit, and grows it again if the name is the cause`() {
    var window = QueryWindow()
    for _ in 0..<64 {
      window.sent()
      window.answered(losses: 0)
    }
    fill(&window)
    var losses = 0
    for _ in 0..<64 { losses += window.lost() ? 1 : 0 }
    #expect(losses == 56)
    #expect(window.size == 8)
    #expect(window.inFlight == 0)
    window.gaveUp(losses: losses)
    #expect(window.size == 64)
  }

  @Test func `without answers, lost queries do not shrink the window`() {
    var window = QueryWindow()
    window.sent()
    window.answered(losses: 0)
    fill(&window)
    #expect((0..<64).count { _ in window.lost() } == 1)
    #expect(window.size == 63)
  }

  @Test func `quiet queries leave their places to others, up to a limit`() {
    var window = QueryWindow()
    while !window.isFull {
      fill(&window)
      for _ in 0..<64 { window.setQuiet(true) }
    }
    #expect(window.inFlight == 64 + QueryWindow.maxQuiet)
    window.setQuiet(false)
    window.answered(losses: 0)
    #expect(!window.isFull)
  }

  @Test func `the window grows once a round trip after the server has dropped queries`() {
    var window = QueryWindow()
    window.sent()
    window.answered(losses: 0)
    fill(&window)
    let losses = window.lost() ? 1 : 0
    window.sent()
    window.answered(losses: losses)
    #expect(window.size == 63)
    for _ in 0..<10 * 63 {
      fill(&window)
      window.answered(losses: 0)
    }
    #expect((71...73).contains(window.size))
  }
}

/// A model of a name server that is slow and drops queries beyond a number, and of a client with a window.
private struct Simulation {
  struct Query {
    var attempts = 0
    var losses = 0
    var isDead = false
    var isDropped = false
    var isQuiet = false
    var quietAt = 0
    var due = 0
  }

  let maxAtOnce: Int
  /// In steps; the client's timeout is 2,000 steps.
  let delay = 30
  var window = QueryWindow()
  var sent = 0
  var resolved = 0
  var steps = 0

  /// Asks for `count` names, with three attempts each. One in `deadEvery` names is never answered.
  mutating func resolve(_ count: Int, deadEvery: Int = .max) {
    var waiting = (0..<count).map { Query(isDead: ($0 + 1).isMultiple(of: deadEvery)) }[...]
    var again: [Query] = []
    var flying: [Query] = []
    var isTurnOfAgain = false
    while !waiting.isEmpty || !again.isEmpty || !flying.isEmpty {
      steps += 1
      var rest: [Query] = []
      for var query in flying {
        guard query.due <= steps else {
          if !query.isQuiet, query.quietAt <= steps {
            query.isQuiet = true
            window.setQuiet(true)
          }
          rest.append(query)
          continue
        }
        if query.isQuiet { window.setQuiet(false) }
        query.isQuiet = false
        if !query.isDropped, !query.isDead {
          window.answered(losses: query.losses)
          resolved += 1
          continue
        }
        query.losses += window.lost() ? 1 : 0
        if query.attempts < 3 { again.append(query) } else { window.gaveUp(losses: query.losses) }
      }
      flying = rest
      var serving = flying.count { !$0.isDropped && !$0.isDead }
      while !window.isFull, !again.isEmpty || !waiting.isEmpty {
        isTurnOfAgain.toggle()
        let takesAgain = waiting.isEmpty || (isTurnOfAgain && !again.isEmpty)
        var query = takesAgain ? again.removeFirst() : waiting.removeFirst()
        query.attempts += 1
        query.isDropped = !query.isDead && serving >= maxAtOnce
        query.quietAt = steps + 250
        query.due = steps + (query.isDropped || query.isDead ? 2_000 : delay)
        serving += query.isDropped || query.isDead ? 0 : 1
        sent += 1
        window.sent()
        flying.append(query)
      }
    }
  }
}

extension QueryWindowTests {
  @Test(arguments: [(30, 5_000), (100, 5_000), (100, 50_000), (400, 50_000), (10, 1_000)])
  func `all names are resolved by a server that drops queries, with few more queries than names`(
    maxAtOnce: Int, names: Int
  ) {
    var simulation = Simulation(maxAtOnce: maxAtOnce)
    simulation.resolve(names)
    #expect(simulation.resolved >= names * 999 / 1_000)
    #expect(simulation.sent <= names * 105 / 100 + 200)
    #expect(simulation.window.size <= maxAtOnce * 5 / 4 + 8)
  }

  @Test(arguments: [10, 20, 50])
  func `names that are never answered do not delay the others`(deadEvery: Int) {
    var simulation = Simulation(maxAtOnce: 10_000)
    simulation.resolve(20_000, deadEvery: deadEvery)
    #expect(simulation.resolved == 20_000 - 20_000 / deadEvery)
    #expect(simulation.steps <= 1_000_000 / deadEvery, "each attempt at a dead name lasts 2,000 steps")
    #expect(simulation.window.size >= 64)
  }
}
