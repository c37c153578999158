internal import Platform
internal import Synchronization

/// The weights of a Lanczos filter along one axis: a sinc windowed by the main lobe of another (three lobes), which is
/// widened in proportion to the reduction (Duchon, Lanczos Filtering in One and Two Dimensions, 1979).
struct Lanczos {
  private static let lobes = 3.0

  /// The range of source samples for each result sample. Neither end ever decreases.
  let spans: [Range<Int>]
  /// The maximum number of samples in a span, rounded up to an even number.
  let taps: Int
  /// The weights of each result sample in turn, `taps` each. Those within the span add up to 1, the rest are 0.
  let weights: [Float]

  /// - Parameters:
  ///   - part: the part of the source, in samples. Either end may lie within a sample.
  ///   - count: the number of result samples.
  init(from part: Range<Double>, to count: Int) {
    let length = part.upperBound - part.lowerBound
    if length == Double(count), part.lowerBound == part.lowerBound.rounded() {
      // All other weights of the filter are 0.
      spans = (0..<count).map { Int(part.lowerBound) + $0..<(Int(part.lowerBound) + $0 + 1) }
      taps = 2
      weights = (0..<(2 * count)).map { $0.isMultiple(of: 2) ? 1 : 0 }
      return
    }
    let scale = length / Double(count)
    let width = max(1, scale)
    let (first, end) = (Int(part.lowerBound), Int(part.upperBound.rounded(.up)))
    let center = { (sample: Int) in part.lowerBound + (Double(sample) + 0.5) * scale }
    let spans = (0..<count).map { sample in
      let center = center(sample)
      let from = max(first, Int(center - Self.lobes * width))
      return from..<min(end, Int((center + Self.lobes * width).rounded(.up)))
    }
    let taps = ((spans.lazy.map(\.count).max() ?? 0) + 1) / 2 * 2
    weights = [Float](unsafeUninitializedCapacity: taps * count) { weights, initialized in
      weights.initialize(repeating: 0)
      let turn = .pi / (width * Self.lobes)
      let ofTurn = (sine: sin(turn), cosine: cos(turn))
      for (sample, span) in spans.enumerated() {
        let distance = (Double(span.lowerBound) + 0.5 - center(sample)) / width
        let place = weights.baseAddress! + sample * taps
        Self.write(span.count, to: place, from: distance * .pi / Self.lobes, turn, ofTurn)
      }
      initialized = taps * count
    }
    (self.spans, self.taps) = (spans, taps)
  }

  private static let recent = Mutex<[(part: Range<Double>, filter: Lanczos)]>([])
  private static let maxCached = 8

  /// Returns a cached filter if there is one, because the planes of an image share filters.
  static func cached(from part: Range<Double>, to count: Int) -> Lanczos {
    recent.withLock { recent in
      if let entry = recent.first(where: { $0.part == part && $0.filter.spans.count == count }) { return entry.filter }
      if recent.count == maxCached { recent.removeFirst() }
      recent.append((part, Lanczos(from: part, to: count)))
      return recent[recent.count - 1].filter
    }
  }

  /// The range of all source samples that are used.
  var covered: Range<Int> { (spans.first?.lowerBound ?? 0)..<(spans.last?.upperBound ?? 0) }

  /// The maximum number of result samples to which any `neighbours` adjacent source samples contribute.
  func maxOpen(during neighbours: Int) -> Int {
    var first = 0
    return spans.indices.reduce(0) { most, last in
      while spans[first].upperBound <= spans[last].lowerBound - neighbours + 1 { first += 1 }
      return max(most, last - first + 1)
    }
  }

  /// Writes the weights of one span, whose first sample has this angle. The angle of the next is larger by `turn`.
  private static func write(
    _ count: Int, to weights: UnsafeMutablePointer<Float>, from first: Double, _ turn: Double,
    _ ofTurn: (sine: Double, cosine: Double)
  ) {
    // sinc(d) sinc(d / 3) is s² (3 - 4 s²) / 3a², where a is a third of pi d and s is its sine. The sine is computed
    // from that of the previous sample by a rotation.
    var angle = first
    var (sine, cosine) = (sin(angle), cos(angle))
    var sum = 0.0
    for index in 0..<count {
      let square = sine * sine
      let weight = abs(angle) < 1e-6 ? 1 : abs(angle) >= .pi ? 0 : square * (3 - 4 * square) / (3 * angle * angle)
      (sine, cosine) = (sine * ofTurn.cosine + cosine * ofTurn.sine, cosine * ofTurn.cosine - sine * ofTurn.sine)
      angle += turn
      weights[index] = Float(weight)
      sum += weight
    }
    for index in 0..<count { weights[index] *= Float(1 / sum) }
  }
}
