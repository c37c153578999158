/// The visible part of a coded picture (`clap`, ISO/IEC 14496-12 section 12.1.4).
public struct CleanAperture: Sendable, Hashable {
  public let x: Int
  public let y: Int
  public let width: Int
  public let height: Int

  /// Nil if the edges are not on whole pixels of the picture. Then the whole picture is shown, as in browsers.
  ///
  /// - Parameters:
  ///   - numbers: the eight 32-bit fields of the box: numerator and denominator of the width, of the height, and of the
  ///     horizontal and vertical distance of the part's middle from that of the picture. The numerators of the
  ///     distances are signed.
  ///   - width: the width of the coded picture, less than 2^32.
  public init?(_ numbers: [Int], width: Int, height: Int) {
    guard let across = Self.extent(numbers[0], numbers[1], offset: (numbers[4], numbers[5]), of: width),
      let down = Self.extent(numbers[2], numbers[3], offset: (numbers[6], numbers[7]), of: height)
    else { return nil }
    (x, self.width) = (across.start, across.length)
    (y, self.height) = (down.start, down.length)
  }

  private static func extent(
    _ numerator: Int, _ denominator: Int, offset: (numerator: Int, denominator: Int), of whole: Int
  ) -> (start: Int, length: Int)? {
    guard denominator > 0, offset.denominator > 0, numerator.isMultiple(of: denominator) else { return nil }
    let length = numerator / denominator
    // Doubled, so that half pixels are integers.
    let doubled = 2 * Int(Int32(truncatingIfNeeded: offset.numerator))
    guard length > 0, length <= whole, doubled.isMultiple(of: offset.denominator) else { return nil }
    let start = whole - length + doubled / offset.denominator
    guard start >= 0, start.isMultiple(of: 2), start / 2 + length <= whole else { return nil }
    return (start / 2, length)
  }
}
