/// The part of a coded picture that is shown (`clap`, ISO/IEC 14496-12 section 12.1.4).
public struct CleanAperture: Sendable, Hashable {
  public let x: Int
  public let y: Int
  public let width: Int
  public let height: Int

  /// nil if the edges are not whole pixels of the picture: then all of it is shown, as in browsers.
  ///
  /// - Parameters:
  ///   - numbers: the eight fields of the box, 32 bits each: numerator and denominator of the width, of the height, and
  ///     of the distances of the middle of the part from that of the picture, whose numerators are signed.
  ///   - width: of the coded picture, less than 2^32.
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
    // Twice the start, so that half pixels are whole numbers.
    let doubled = 2 * Int(Int32(truncatingIfNeeded: offset.numerator))
    guard length > 0, length <= whole, doubled.isMultiple(of: offset.denominator) else { return nil }
    let start = whole - length + doubled / offset.denominator
    guard start >= 0, start.isMultiple(of: 2), start / 2 + length <= whole else { return nil }
    return (start / 2, length)
  }
}
