/// The random numbers for the loader's delays: those of the system, or a reproducible sequence.
public struct LoaderRandom: RandomNumberGenerator, Sendable {
  private var system = SystemRandomNumberGenerator()
  private var state: UInt64?

  /// - Parameter seed: nil for numbers of the system.
  public init(seed: UInt64?) { state = seed }

  public mutating func next() -> UInt64 {
    guard let state else { return system.next() }
    // SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
    let new = state &+ 0x9e37_79b9_7f4a_7c15
    self.state = new
    var mixed = (new ^ (new >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }
}
