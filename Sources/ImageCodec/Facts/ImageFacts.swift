/// Facts about an image that a decoder computes when a host asks for them.
public struct FactSet: OptionSet, Sendable, Hashable {
  public let rawValue: Int
  public init(rawValue: Int) { self.rawValue = rawValue }
  public static let perceptualHash = FactSet(rawValue: 1)

  /// All facts, with the names that hosts give them.
  public static let named: [(name: String, fact: FactSet)] = [("perceptualHash", .perceptualHash)]
}

/// The facts that a decoder has computed. A fact that was not asked for is nil.
public struct ImageFacts: Sendable, Hashable {
  /// See `PerceptualHash`.
  public var perceptualHash: UInt64?

  public init() {}
}

/// The facts in a message between the worker and a decoder.
extension ImageFacts {
  private static let hashName = "perceptualHash"

  func add(to message: inout CodecMessage) {
    message[Self.hashName] = perceptualHash.map { String($0, radix: 16) }
  }

  /// Nil if a fact is not valid.
  init?(_ message: CodecMessage) {
    if let digits = message[Self.hashName] {
      guard let hash = UInt64(digits, radix: 16) else { return nil }
      perceptualHash = hash
    }
  }
}
