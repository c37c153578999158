import Testing

@testable import HTTPTransport

@Suite struct DescriptorLimitTests {
  @Test(arguments: [(128, 32), (1024, 256), (2, 1), (Int.max, Int.max / 4)])
  func `idle connections leave descriptors for everything else`(descriptors: Int, connections: Int) {
    #expect(DescriptorLimit.maxConnections(descriptors: descriptors) == connections)
  }
}
