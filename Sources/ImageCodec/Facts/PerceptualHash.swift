internal import Platform

/// The 64-bit perceptual hash of `phash` in Python's ImageHash 4.3, bit for bit as far as the pixels are the same.
///
/// The luma of the image is reduced to 32 x 32 as by Pillow with Lanczos, and transformed by a two-dimensional DCT-II.
/// A bit is 1 if its coefficient is greater than the median of the 8 x 8 lowest frequencies, including the constant
/// one. The first bit is the highest one; rows of equal vertical frequency follow each other.
///
/// Pillow rounds between the two directions. Pillow 13 resizes the height first if that is the smaller part of the
/// work, and so does this; Pillow 11 always resizes the width first.
///
/// It keeps 128 bytes for each pixel of the width if the height is resized first, and 24 bytes for each pixel of both
/// sides for the filters.
package struct PerceptualHash {
  /// The longest side of an image: the filters then take 25 MB.
  package static let maxSide = 1 << 20

  private static let side = 32
  private static let frequencies = 8

  private let across: PillowFilter
  private let down: PillowFilter
  /// Whether the width is resized before the height.
  private let isNarrowedFirst: Bool
  /// The length of a row of `sums`.
  private let columns: Int
  /// The sums of the weighted rows, in units of `PillowFilter`.
  private var sums: [Int32]
  private var row: [Int32]
  private var nextRow = 0

  /// - Parameters: the size of the image, at most `maxSide` each.
  package init(width: Int, height: Int) {
    across = PillowFilter(from: width, to: Self.side)
    down = PillowFilter(from: height, to: Self.side)
    // Found by comparing both orders with Pillow 13 for widths from 20 to 900 and heights from 10 to 2000.
    isNarrowedFirst = height <= Self.side || height - Self.side <= 2 * (width - Self.side)
    columns = isNarrowedFirst ? Self.side : width
    sums = [Int32](repeating: PillowFilter.half, count: Self.side * columns)
    row = [Int32](repeating: 0, count: columns)
  }

  /// The luma of a pixel, as in Pillow's mode L (ITU-R BT.601).
  @inline(__always)
  package static func luma(_ red: UInt8, _ green: UInt8, _ blue: UInt8) -> UInt8 {
    UInt8(truncatingIfNeeded: (UInt32(red) * 19_595 + UInt32(green) * 38_470 + UInt32(blue) * 7_471 + 0x8000) >> 16)
  }

  /// Adds the next row of luma, from the top.
  package mutating func add(_ luma: UnsafeBufferPointer<UInt8>) {
    for column in 0..<columns { row[column] = isNarrowedFirst ? across.sample(column, of: luma) : Int32(luma[column]) }
    for sample in 0..<Self.side {
      guard let weight = down.weight(of: nextRow, in: sample) else { continue }
      let start = sample * columns
      for column in 0..<columns { sums[start + column] &+= row[column] &* weight }
    }
    nextRow += 1
  }

  /// The 32 x 32 pixels.
  private var small: [Double] {
    let bytes = sums.map { PillowFilter.byte($0) }
    if isNarrowedFirst { return bytes.map { Double($0) } }
    return bytes.withUnsafeBufferPointer { bytes in
      (0..<(Self.side * Self.side)).map { index in
        let start = index / Self.side * columns
        let row = UnsafeBufferPointer(rebasing: bytes[start..<(start + columns)])
        return Double(across.sample(index % Self.side, of: row))
      }
    }
  }

  /// The hash, once all rows have been added.
  package var value: UInt64 {
    let pixels = small
    let (side, count) = (Self.side, Self.frequencies)
    // The transform of ImageHash is not normalised: each factor of 2 is kept.
    let waves = (0..<count).map { frequency in
      (0..<side).map { 2 * cos(.pi * Double(frequency * (2 * $0 + 1)) / Double(2 * side)) }
    }
    var coefficients: [Double] = []
    for vertical in 0..<count {
      let row = (0..<side).map { x in (0..<side).reduce(0.0) { $0 + pixels[$1 * side + x] * waves[vertical][$1] } }
      for horizontal in 0..<count {
        let sum = (0..<side).reduce(0.0) { $0 + row[$1] * waves[horizontal][$1] }
        // Rounding errors must not decide between coefficients that are equal.
        coefficients.append((sum * 0x1p20).rounded())
      }
    }
    let sorted = coefficients.sorted()
    let median = (sorted[sorted.count / 2 - 1] + sorted[sorted.count / 2]) / 2
    return coefficients.reduce(0) { $0 << 1 | ($1 > median ? 1 : 0) }
  }
}

/// The weights by which Pillow resizes one direction of an 8-bit image with Lanczos (`precompute_coeffs` and
/// `normalize_coeffs_8bpc` in its Resample.c): fixed-point numbers with 22 fractional bits.
struct PillowFilter {
  private static let lobes = 3.0
  private static let bits: Int32 = 22
  /// One half, which each sum begins with, so that it is rounded.
  static let half: Int32 = 1 << (bits - 1)

  private var starts: [Int] = []
  /// The end of each sample's weights in `weights`.
  private var ends: [Int] = []
  private var weights: [Int32] = []

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
      starts.append(start)
      weights += values.map { value in
        let scaled = (sum == 0 ? value : value / sum) * Double(1 << Self.bits)
        return Int32(scaled + (scaled < 0 ? -0.5 : 0.5))
      }
      ends.append(weights.count)
    }
  }

  private static func lanczos(_ x: Double) -> Double { -3 <= x && x < 3 ? sinc(x) * sinc(x / 3) : 0 }

  private static func sinc(_ x: Double) -> Double { x == 0 ? 1 : sin(x * .pi) / (x * .pi) }

  private func first(_ sample: Int) -> Int { sample == 0 ? 0 : ends[sample - 1] }

  /// A sample of the result, from 0 to 255.
  func sample(_ sample: Int, of row: UnsafeBufferPointer<UInt8>) -> Int32 {
    let (first, start) = (first(sample), starts[sample])
    return weights.withUnsafeBufferPointer { weights in
      var sum = Self.half
      for index in 0..<(ends[sample] - first) { sum &+= Int32(row[start + index]) &* weights[first + index] }
      return Int32(Self.byte(sum))
    }
  }

  /// The weight of a source sample in a sample of the result; nil if it does not contribute.
  func weight(of source: Int, in sample: Int) -> Int32? {
    let index = source - starts[sample]
    return index >= 0 && index < ends[sample] - first(sample) ? weights[first(sample) + index] : nil
  }

  /// A sum as a byte, without its fraction.
  static func byte(_ sum: Int32) -> UInt8 { UInt8(clamping: sum >> bits) }
}
