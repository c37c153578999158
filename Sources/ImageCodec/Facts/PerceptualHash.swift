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
  /// The longest side of an image: a filter then takes 25 MB.
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
  private var luma: [UInt8]
  private var narrowed = [UInt8](repeating: 0, count: side)
  private var nextRow = 0

  /// - Parameters: the size of the image, at most `maxSide` each.
  package init(width: Int, height: Int) {
    across = PillowFilter(from: width, to: Self.side)
    down = PillowFilter(from: height, to: Self.side)
    // Found by comparing both orders with Pillow 13 for widths from 20 to 900 and heights from 10 to 2000.
    isNarrowedFirst = height <= Self.side || height - Self.side <= 2 * (width - Self.side)
    columns = isNarrowedFirst ? Self.side : width
    sums = [Int32](repeating: PillowFilter.half, count: Self.side * columns)
    luma = [UInt8](repeating: 0, count: width)
  }

  /// Adds the next row, from the top: bytes of grey or R, G, B first in each of `bands` bands.
  package mutating func add(_ row: UnsafeRawBufferPointer, bands: Int) {
    luma.withUnsafeMutableBufferPointer { luma in
      switch bands {
      case 3: Self.readColors(row, bands: 3, into: luma)
      case 4...: Self.readColors(row, bands: bands, into: luma)
      default: for x in luma.indices { luma[x] = row[x &* bands] }
      }
    }
    if isNarrowedFirst {
      across.narrow(luma, into: &narrowed)
      down.add(narrowed, asRow: nextRow, to: &sums)
    } else {
      down.add(luma, asRow: nextRow, to: &sums)
    }
    nextRow += 1
  }

  /// Computes luma as in Pillow's mode L (ITU-R BT.601).
  @inline(__always)
  private static func readColors(
    _ row: UnsafeRawBufferPointer, bands: Int, into luma: UnsafeMutableBufferPointer<UInt8>
  ) {
    for x in luma.indices {
      let pixel = x &* bands
      let (red, green, blue) = (UInt32(row[pixel]), UInt32(row[pixel &+ 1]), UInt32(row[pixel &+ 2]))
      luma[x] = UInt8(truncatingIfNeeded: (red &* 19_595 &+ green &* 38_470 &+ blue &* 7_471 &+ 0x8000) &>> 16)
    }
  }

  /// The 32 x 32 pixels.
  private var small: [Double] {
    let bytes = sums.map { PillowFilter.byte($0) }
    if isNarrowedFirst { return bytes.map { Double($0) } }
    var narrowed = narrowed
    return stride(from: 0, to: bytes.count, by: columns).flatMap { start in
      across.narrow(Array(bytes[start..<(start + columns)]), into: &narrowed)
      return narrowed.map { Double($0) }
    }
  }

  /// The hash, once all rows have been added.
  package var value: UInt64 {
    let pixels = small
    let (side, count) = (Self.side, Self.frequencies)
    // The transform of ImageHash is not normalised: each factor of 2 is kept.
    let waves = (0..<count).map { frequency in
      (0..<side).map { place -> Double in
        let halfPeriods = Double(frequency * (2 * place + 1)) / Double(2 * side)
        return 2 * cos(.pi * halfPeriods)
      }
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
