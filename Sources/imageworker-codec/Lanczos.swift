#if canImport(Darwin)
  internal import Darwin
#else
  internal import Glibc
#endif

/// How the pixels of a result are made of those of the source, along one axis: by a sinc windowed by the middle of
/// another (three lobes), which is made as wide as the result is small (Duchon, Lanczos Filtering in One and Two
/// Dimensions, 1979).
struct Lanczos {
  private static let lobes = 3.0

  /// The source's pixels that each of the result's is made of. Neither end ever goes back.
  let spans: [Range<Int>]
  /// Of all spans, one after the other. Those of each add up to 1.
  let weights: [Float]
  /// Where those of each span begin.
  private let begins: [Int]

  /// - Parameters:
  ///   - length: of the source in its pixels, of which the last may be cut.
  ///   - count: of the result's pixels.
  init(from length: Double, to count: Int) {
    if length == Double(count) {
      // The filter's other weights are all 0.
      (spans, weights) = ((0..<count).map { $0..<($0 + 1) }, [Float](repeating: 1, count: count))
      begins = Array(0..<count)
      return
    }
    let scale = length / Double(count)
    let width = max(1, scale)
    var (spans, weights, begins): ([Range<Int>], [Float], [Int]) = ([], [], [])
    for pixel in 0..<count {
      let center = (Double(pixel) + 0.5) * scale
      let first = max(0, Int(center - Self.lobes * width))
      let end = min(Int(length.rounded(.up)), Int((center + Self.lobes * width).rounded(.up)))
      spans.append(first..<end)
      begins.append(weights.count)
      weights += Self.weights(count: end - first, from: (Double(first) + 0.5 - center) / width, step: 1 / width)
    }
    (self.spans, self.weights, self.begins) = (spans, weights, begins)
  }

  /// How much one of the source's pixels counts, which may be outside of the span.
  func weight(of source: Int, in pixel: Int) -> Float {
    let span = spans[pixel]
    return span.contains(source) ? weights[begins[pixel] + source - span.lowerBound] : 0
  }

  /// The most pixels of the result that any run of so many neighbours in the source contributes to.
  func mostOpen(during neighbours: Int) -> Int {
    var first = 0
    return spans.indices.reduce(0) { most, last in
      while spans[first].upperBound <= spans[last].lowerBound - neighbours + 1 { first += 1 }
      return max(most, last - first + 1)
    }
  }

  private static func weights(count: Int, from distance: Double, step: Double) -> [Float] {
    // sinc(d) sinc(d / 3) is s² (3 - 4 s²) / 3a², where a is a third of pi d, and s its sine, which is turned on from
    // one to the next.
    var angle = distance * .pi / lobes
    let turn = step * .pi / lobes
    var (sine, cosine) = (sin(angle), cos(angle))
    let (sineOfTurn, cosineOfTurn) = (sin(turn), cos(turn))
    var sum = 0.0
    let weights = (0..<count).map { _ in
      let square = sine * sine
      let weight = abs(angle) < 1e-6 ? 1 : abs(angle) >= .pi ? 0 : square * (3 - 4 * square) / (3 * angle * angle)
      (sine, cosine) = (sine * cosineOfTurn + cosine * sineOfTurn, cosine * cosineOfTurn - sine * sineOfTurn)
      angle += turn
      sum += weight
      return weight
    }
    return weights.map { Float($0 / sum) }
  }
}
