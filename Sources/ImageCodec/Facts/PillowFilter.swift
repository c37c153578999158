internal import Platform

/// The weights by which Pillow resizes one direction of an 8-bit image with Lanczos (`precompute_coeffs` and
/// `normalize_coeffs_8bpc` in its Resample.c): fixed-point numbers with 22 fractional bits.
struct PillowFilter {
  private static let lobes = 3.0
  private static let bits: Int32 = 22
  /// One half, which each sum begins with, so that it is rounded.
  static let half: Int32 = 1 << (bits - 1)

  /// The weights of the source samples `start ..< start + count` in a sample of the result.
  private struct Weights {
    let start: Int
    /// The place of the first weight.
    let first: Int
    let count: Int
  }

  private var samples: [Weights] = []
  /// The parts of the weights, `upper * 2048 + lower`: processors multiply numbers of 16 bits faster.
  private var upper: [Int16] = []
  private var lower: [Int16] = []

  init(from length: Int, to count: Int) {
    let scale = Double(length) / Double(count)
    let width = max(1, scale)
    let support = Self.lobes * width
    for sample in 0..<count {
      let center = (Double(sample) + 0.5) * scale
      let start = max(0, Int(center - support + 0.5))
      let end = min(length, Int(center + support + 0.5))
      let values = (start..<end).map { Self.lanczos((Double($0) - center + 0.5) / width) }
      let sum = values.reduce(0, +)
      samples.append(Weights(start: start, first: upper.count, count: values.count))
      for value in values {
        let scaled = (sum == 0 ? value : value / sum) * Double(1 << Self.bits)
        let weight = Int32(scaled + (scaled < 0 ? -0.5 : 0.5))
        upper.append(Int16(weight >> 11))
        lower.append(Int16(weight & 2047))
      }
    }
  }

  private static func lanczos(_ x: Double) -> Double { -3 <= x && x < 3 ? sinc(x) * sinc(x / 3) : 0 }

  private static func sinc(_ x: Double) -> Double { x == 0 ? 1 : sin(x * .pi) / (x * .pi) }

  /// Computes the result samples of a row of the source length.
  func narrow(_ row: [UInt8], into result: inout [UInt8]) {
    row.withUnsafeBufferPointer { row in
      upper.withUnsafeBufferPointer { upper in
        lower.withUnsafeBufferPointer { lower in
          for (index, sample) in samples.enumerated() {
            // Both may wrap, because the whole sum fits.
            var (upperSum, lowerSum) = (Int32(0), Int32(0))
            for tap in 0..<sample.count {
              let value = Int32(row[sample.start &+ tap])
              upperSum &+= value &* Int32(upper[sample.first &+ tap])
              lowerSum &+= value &* Int32(lower[sample.first &+ tap])
            }
            result[index] = Self.byte(Self.half &+ upperSum &<< 11 &+ lowerSum)
          }
        }
      }
    }
  }

  /// Adds a row of the source, times its weights, to the rows of the result that it contributes to.
  func add(_ row: [UInt8], asRow source: Int, to sums: inout [Int32]) {
    sums.withUnsafeMutableBufferPointer { sums in
      row.withUnsafeBufferPointer { row in
        for (index, sample) in samples.enumerated() where source >= sample.start && source < sample.start + sample.count
        {
          let place = sample.first + source - sample.start
          let weight = Int32(upper[place]) << 11 + Int32(lower[place])
          let start = index * row.count
          for column in row.indices { sums[start &+ column] &+= Int32(row[column]) &* weight }
        }
      }
    }
  }

  /// A sum as a byte, without its fraction.
  static func byte(_ sum: Int32) -> UInt8 { UInt8(clamping: sum >> bits) }
}
