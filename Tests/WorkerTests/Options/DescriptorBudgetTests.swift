import Testing

@testable import Worker

@Suite struct DescriptorBudgetTests {
  @Test(arguments: [(128, 2), (256, 8), (1024, 2), (1024, 64), (32, 64), (2, 2), (Int.max, 2)])
  func `the descriptors suffice for connections, files and short-lived sockets`(
    descriptors: Int, decoders: Int
  ) {
    let budget = DescriptorBudget(descriptors: descriptors, decoders: decoders)
    #expect(budget.transfers >= 1)
    guard descriptors >= 12 else { return }
    let files = budget.transfers + budget.finishing
    #expect(budget.connections + files + 2 * budget.transfers <= descriptors - min(40 + 4 * decoders, descriptors / 2))
  }

  @Test func `with few decoders, most descriptors are for transfers`() {
    #expect(DescriptorBudget(descriptors: 1024, decoders: 2).transfers == 162)
    #expect(DescriptorBudget(descriptors: 128, decoders: 2).transfers == 13)
  }
}
