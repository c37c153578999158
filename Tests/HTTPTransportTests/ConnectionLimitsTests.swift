import Testing

@testable import HTTPTransport

@Suite struct ConnectionLimitsTests {
  @Test func `without descriptors, half of the connections are kept, and a new one needs others to close`() {
    var limits = ConnectionLimits(max: 128)
    limits.lower(count: 64)
    #expect((limits.open, limits.kept) == (56, 32))
    limits.lower(count: 64)
    #expect((limits.open, limits.kept) == (55, 32))
  }

  @Test func `there is always one connection`() {
    var limits = ConnectionLimits(max: 0)
    for _ in 0..<3 { limits.lower(count: 0) }
    #expect((limits.open, limits.kept) == (1, 1))
  }

  @Test func `each transfer that ends allows one more connection, and every 64th one more idle connection`() {
    var limits = ConnectionLimits(max: 10)
    limits.lower(count: 8)
    for _ in 0..<64 { limits.raise() }
    #expect((limits.open, limits.kept) == (10, 5))
    for _ in 0..<(64 * 5) { limits.raise() }
    #expect((limits.open, limits.kept) == (10, 10))
  }
}
