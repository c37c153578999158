internal import Platform

/// A function from stored values of a channel to linear light, both in 0...1.
package enum TransferFunction: Hashable {
  /// light = value ^ gamma.
  case gamma(Double)
  /// IEC 61966-2-1.
  case sRGB
}

/// The primaries and the white of a colour space, as CIE 1931 x and y.
package struct Chromaticities: Hashable, Sendable {
  package struct Point: Hashable, Sendable {
    let x, y: Double

    init(_ x: Double, _ y: Double) { (self.x, self.y) = (x, y) }
  }

  package let red, green, blue, white: Point

  package static let d65 = Point(0.3127, 0.3290)
  package static let bt709 = Chromaticities(
    red: Point(0.64, 0.33), green: Point(0.30, 0.60), blue: Point(0.15, 0.06), white: d65)
  package static let bt2020 = Chromaticities(
    red: Point(0.708, 0.292), green: Point(0.170, 0.797), blue: Point(0.131, 0.046), white: d65)
  package static let displayP3 = Chromaticities(
    red: Point(0.680, 0.320), green: Point(0.265, 0.690), blue: Point(0.150, 0.060), white: d65)
}

/// Builds an ICC profile of a display from its primaries and one curve (ICC.1:2022, "three-component matrix-based
/// profiles"), so that colours that a file declares in another way are converted like any profile.
package enum ICCProfile {
  /// Nil if the primaries span no colour space, or the white has no luminance.
  package static func display(_ chromaticities: Chromaticities, _ transfer: TransferFunction) -> [UInt8]? {
    guard let matrix = Matrix3.toXYZ(of: chromaticities),
      let adaptation = Matrix3.adaptation(from: chromaticities.white)
    else { return nil }
    let colorants = adaptation * matrix
    let curve = curve(transfer)
    let tags: [(String, [UInt8])] = [
      ("desc", text("display")), ("cprt", text("none")), ("wtpt", xyz(Matrix3.d50)),
      ("chad", tag("sf32") + adaptation.rows.flatMap { $0 }.flatMap(fixed)),
      ("rXYZ", xyz(colorants.column(0))), ("gXYZ", xyz(colorants.column(1))), ("bXYZ", xyz(colorants.column(2))),
      ("rTRC", curve), ("gTRC", curve), ("bTRC", curve),
    ]
    return file(tags)
  }

  /// The file: section 7.2 with the header of an RGB display and XYZ, then section 7.3.
  private static func file(_ tags: [(name: String, content: [UInt8])]) -> [UInt8] {
    let start = 128 + 4 + 12 * tags.count
    var table = big(tags.count)
    var contents: [UInt8] = []
    for tag in tags {
      table += Array(tag.name.utf8) + big(start + contents.count) + big(tag.content.count)
      contents += tag.content + [UInt8](repeating: 0, count: -tag.content.count & 3)
    }
    var header = big(start + contents.count) + big(0) + big(0x0430_0000)
    header += Array("mntrRGB XYZ ".utf8) + [UInt8](repeating: 0, count: 12) + Array("acsp".utf8)
    header += [UInt8](repeating: 0, count: 28) + Matrix3.d50.flatMap(fixed)
    header += [UInt8](repeating: 0, count: 128 - header.count)
    return header + table + contents
  }

  /// A parametricCurveType, section 10.18.
  private static func curve(_ transfer: TransferFunction) -> [UInt8] {
    switch transfer {
    case .gamma(let gamma): tag("para") + [0, 0, 0, 0] + fixed(gamma)
    case .sRGB: tag("para") + [0, 3, 0, 0] + [2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045].flatMap(fixed)
    }
  }

  /// A multiLocalizedUnicodeType with one record, section 10.15.
  private static func text(_ text: String) -> [UInt8] {
    let characters = text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
    return tag("mluc") + big(1) + big(12) + Array("enUS".utf8) + big(characters.count) + big(28) + characters
  }

  private static func xyz(_ values: [Double]) -> [UInt8] { tag("XYZ ") + values.flatMap(fixed) }

  private static func tag(_ name: String) -> [UInt8] { Array(name.utf8) + big(0) }

  /// An s15Fixed16Number.
  private static func fixed(_ value: Double) -> [UInt8] {
    big(Int(Int32(max(-32_768, min(32_767, value)) * 65_536)))
  }

  private static func big(_ value: Int) -> [UInt8] {
    let bits = UInt32(truncatingIfNeeded: value)
    return [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: bits >> $0) }
  }
}

/// A 3 x 3 matrix for colours.
package struct Matrix3: Equatable {
  var rows: [[Double]]

  /// The white of the connection space, ICC.1:2022 section 6.3.4.3.
  static let d50 = [0.9642, 1.0, 0.8249]

  func column(_ index: Int) -> [Double] { rows.map { $0[index] } }

  static func * (left: Matrix3, right: Matrix3) -> Matrix3 {
    Matrix3(rows: left.rows.map { row in (0..<3).map { column in dot(row, right.column(column)) } })
  }

  static func * (left: Matrix3, right: [Double]) -> [Double] { left.rows.map { dot($0, right) } }

  private static func dot(_ left: [Double], _ right: [Double]) -> Double {
    left[0] * right[0] + left[1] * right[1] + left[2] * right[2]
  }

  static func diagonal(_ values: [Double]) -> Matrix3 {
    Matrix3(rows: [[values[0], 0, 0], [0, values[1], 0], [0, 0, values[2]]])
  }

  /// Nil if the matrix has no inverse.
  var inverse: Matrix3? {
    let (a, b, c) = (rows[0], rows[1], rows[2])
    func minor(_ p: [Double], _ q: [Double], _ i: Int, _ j: Int) -> Double { p[i] * q[j] - p[j] * q[i] }
    let determinant = a[0] * minor(b, c, 1, 2) - a[1] * minor(b, c, 0, 2) + a[2] * minor(b, c, 0, 1)
    guard abs(determinant) > 1e-12 else { return nil }
    let adjugate = [
      [minor(b, c, 1, 2), -minor(a, c, 1, 2), minor(a, b, 1, 2)],
      [-minor(b, c, 0, 2), minor(a, c, 0, 2), -minor(a, b, 0, 2)],
      [minor(b, c, 0, 1), -minor(a, c, 0, 1), minor(a, b, 0, 1)],
    ]
    return Matrix3(rows: adjugate.map { $0.map { $0 / determinant } })
  }

  /// The conversion from linear RGB to CIE XYZ (SMPTE RP 177).
  static func toXYZ(of chromaticities: Chromaticities) -> Matrix3? {
    let primaries = [chromaticities.red, chromaticities.green, chromaticities.blue].map(xyz)
    let columns = Matrix3(rows: (0..<3).map { row in primaries.map { $0[row] } })
    guard chromaticities.white.y > 0, let inverse = columns.inverse else { return nil }
    let white = xyz(chromaticities.white).map { $0 / chromaticities.white.y }
    return columns * diagonal(inverse * white)
  }

  private static func xyz(_ point: Chromaticities.Point) -> [Double] { [point.x, point.y, 1 - point.x - point.y] }

  /// The adaptation from a white to D50, by the Bradford matrix (ICC.1:2022 annex E).
  static func adaptation(from white: Chromaticities.Point) -> Matrix3? {
    let bradford = Matrix3(rows: [[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]])
    guard white.y > 0, let inverse = bradford.inverse else { return nil }
    let (from, to) = (bradford * xyz(white).map { $0 / white.y }, bradford * d50)
    guard from.allSatisfy({ $0 > 0 }) else { return nil }
    return inverse * diagonal((0..<3).map { to[$0] / from[$0] }) * bradford
  }
}
