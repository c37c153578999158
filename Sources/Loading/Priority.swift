/// How urgent a load is. A job has the highest priority of the loads that wait for it.
public enum Priority: Int, Sendable, CaseIterable, Comparable {
  case lowest, low, normal, high, highest

  public init?(name: String) {
    guard let match = Self.allCases.first(where: { $0.name == name }) else { return nil }
    self = match
  }

  public var name: String { "\(self)" }

  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
